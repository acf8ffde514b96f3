"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const turns = at("turns"), text = at("text");
  let messages = [], running = null;

  function show(who, words, kind) {
    const turn = document.createElement("div"), name = document.createElement("div"), p = document.createElement("p");
    turn.className = "turn " + kind;
    name.className = "who";
    name.textContent = who;
    p.textContent = words;
    turn.append(name, p);
    turns.append(turn);
    turns.scrollTop = turns.scrollHeight;
    return p;
  }

  function request(words) {
    const chat = at("form").value === "chat", body = { model: at("model").value, stream: true };
    if (at("temperature").value !== "") body.temperature = Number(at("temperature").value);
    if (at("seed").value !== "") body.seed = Number(at("seed").value);
    if (chat) body.messages = messages;
    else Object.assign(body, { prompt: words, max_tokens: 200 });
    return { path: chat ? "v1/chat/completions" : "v1/completions", body };
  }

  /* Events are separated by an empty line; a piece that comes may end inside of one. */
  async function read(response, take) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events)
        if (event.startsWith("data: {")) take(JSON.parse(event.slice(6)));
    }
  }

  function working(controller) {
    running = controller;
    at("send").disabled = running !== null;
    at("stop").hidden = running === null;
  }

  /* What a refused request is told: JSON with a message, or a plain text. */
  async function accepted(response) {
    if (response.ok) return response;
    const told = await response.text();
    let why = told;
    try { why = JSON.parse(told).error.message; } catch { /* a plain text */ }
    throw new Error(why);
  }

  async function answer(words) {
    const { path, body } = request(words), p = show(body.model, "", "assistant");
    let whole = "", thought = "";
    working(new AbortController());
    try {
      await read(await accepted(await fetch(path, { method: "POST", body: JSON.stringify(body), signal: running.signal })), (event) => {
        const choice = event.choices[0];
        const low = turns.scrollTop + turns.clientHeight > turns.scrollHeight - 40;
        whole += (choice && (choice.text ?? choice.delta.content)) || "";
        thought += (choice && choice.delta?.reasoning_content) || "";
        p.textContent = thought && whole ? `${thought}\n\n${whole}` : thought + whole;
        if (low) turns.scrollTop = turns.scrollHeight;
      });
    } catch (error) {
      if (error.name !== "AbortError") show("error", error.message, "bad");
    }
    if (!whole && !thought) p.parentNode.remove();
    if (body.messages && whole) body.messages.push({ role: "assistant", content: whole });
    else if (body.messages) body.messages.pop();
    working(null);
    text.focus();
  }

  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.value;
    if (running || words.trim() === "") return;
    text.value = "";
    show("you", words, "user");
    if (at("form").value === "chat") messages.push({ role: "user", content: words });
    answer(words);
  });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at("ask").requestSubmit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running) running.abort();
  });
  at("stop").addEventListener("click", () => running && running.abort());
  at("new").addEventListener("click", () => {
    if (running) running.abort();
    messages = [];
    turns.replaceChildren();
    text.focus();
  });
  fetch("v1/models").then(accepted).then((response) => response.json()).then((list) => {
    for (const model of list.data) at("model").append(new Option(model.id));
  }).catch((error) => show("error", error.message, "bad"));
})();
