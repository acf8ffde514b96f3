#!/usr/bin/env python3
"""check_documents.py LOCKSTEP [DOCUMENT...] - checks that the documents' commands and the shipped files work.

Every command line with lockstep in a code block of the documents is run, in a directory of its own
for each document, from the top to the bottom. The shipped configs there have a model of a few
thousand parameters and a few steps, so that the lines need no changes. If a line has a placeholder
(CONFIG), or needs something that is missing here (other hosts, Slurm, half a minute of measuring),
RULES has the replacement. A line that needs more than this machine has is only parsed: with a
nonexistent option at its end, lockstep must reject only that option. So is what takes long, but for
the guide's, without LOCKSTEP_ALL_CASES (make check-slow). Every other line is run.

The configs and machine files are also planned as they are shipped, and placeholders that nobody has
replaced are found; outputs, examples in YAML (document_examples.py) and links (document_links.py) are
checked, too.
"""
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import document_examples
import document_links

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "build/lockstep")
BUILD = os.path.dirname(PROGRAM)
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md"]
SMALL = {"layers": "1", "width": "24", "heads": "3", "context": "16", "vocab": "300", "steps": "4",
         "warmup": "1", "eval_every": "2", "eval_samples": "8"}
CHATS = 40 * ('{"messages": [{"role": "user", "content": "a?"}, '
              '{"role": "assistant", "content": "b"}]}\n')
PAIRS = 40 * ('{"prompt": [{"role": "user", "content": "a?"}], "chosen": [{"role": "assistant", "content": '
              '"b"}], "rejected": [{"role": "assistant", "content": "c"}]}\n')

# (pattern, change, reason): all patterns that match a line are applied, in this order. A line that
# then begins with "parse " is only parsed.
RULES = [
    (r"^\$ ", lambda s: s[2:], "a prompt"),
    (r"\[[^]]*\]", lambda s: re.sub(r"\[([^]]*)\]", r"\1", s), "optional arguments, all given"),
    (r"CONFIG\.yaml\|DIR", lambda s: s.replace("CONFIG.yaml|DIR", "CONFIG.yaml"), "one of them"),
    (r"--prompt N\b", lambda s: s.replace("--prompt N", "--prompt 8"), "any number"),
    (r"import SmolLM2", lambda s: "rm -rf models/smollm2; " + re.sub(r"SmolLM2\S*gguf", "model.gguf", s),
     "a small one"),
    (r"runs/smollm2-chat", lambda s: s.replace("runs/smollm2-chat", "models/smollm2"), "a model as well"),
    (r"\bCONFIG(\.yaml)?\b", lambda s: re.sub(r"\bCONFIG(\.yaml)?\b", "configs/tiny.yaml", s),
     "any config"),
    (r"KEY=VALUE", lambda s: s.replace("KEY=VALUE", "train.steps=4"), "any key"),
    (r"--tokens N", lambda s: s.replace("--tokens N", "--tokens 8"), "any number"),
    (r"-n N\b", lambda s: s.replace("-n N", "-n 2"), "any number"),
    (r"--steps N", lambda s: s.replace("--steps N", "--steps 2"), "any number"),
    (r"8,64,512,4096", lambda s: s.replace("8,64,512,4096", "8,64"), "saves a minute of planning"),
    (r"--seeds \d+\.\.\d+", lambda s: re.sub(r"--seeds \S+", "--seeds 1..20", s), "fewer seeds"),
    (r"--seeds SEED", lambda s: s.replace("SEED", "7"), "any seed"),
    (r"/tmp/", lambda s: s.replace("/tmp/", "tmp/"), "the directory of this check"),
    (r"\bsrun\b", lambda s: re.sub(r"\bsrun( -n \d+)?", lambda m: "lockstep run" + (m[1] or " -n 4"), s),
     "no Slurm here: lockstep run starts the same number of workers"),
    (r"\bmpirun\b", lambda s: s.replace("mpirun", MPIRUN) if MPIRUN else
     s.replace("mpirun", "lockstep run"), "any number of slots; root may"),
    (r"RANK=0 .*\.\.\.", lambda s: "parse " + s.replace("...", "configs/tiny.yaml"), "other hosts"),
    (r"lockstep (serve|watch)(?!.*--export)", lambda s: "parse " + s, "serves until it is stopped"),
    (r"lockstep chat --url", lambda s: "parse " + s, "no server is there"),
    (r"train .*--(watch|metrics-port)", lambda s: "parse " + s, "listens at a port that may be in use"),
    (r"lockstep watch.*--export", lambda s: "mkdir -p runs; " + s, "no runs here"),
    (r"lockstep status runs/mine", lambda s: s.replace(" runs/mine", ""), "no such run here"),
    (r"lockstep predict |eval RUN (--data|--before|other)", lambda s: "parse " + s, "the reader's networks and data"),
    (r"--listen|--join|--membership", lambda s: "parse " + s, "other hosts"),
    (r"(batch|tune|--seeds 3) (runs|configs)/(demo|fashion)|runs/(cnn|mlp)\b", lambda s: "parse " + s, "trains for minutes, with steps of that length"),
    (r"bench machine", lambda s: "parse " + s, "takes half a minute, in which nothing else should run"),
    (r"build/lockstep bench generate", lambda s: "parse " + s, "reads memory for a second; other documents have the same line"),
    (r"bench (kernels|comm)", lambda s: "parse " + s, "measures for a minute"),
    (r"infer\.activations=int8", lambda s: "parse " + s, "the small model has no weights in blocks"),
    (r"MODEL\.gguf", lambda s: s.replace("MODEL.gguf", "model.gguf"), "a small one"),
    (r"(--|parallel\.)device[ =]cuda", lambda s: re.sub(r"(device[ =])cuda", r"\1c", s), "no GPU here"),
    (r"train\.steps=\d{3}", lambda s: re.sub(r"train\.steps=\d{3,}", "train.steps=60", s), "fewer steps"),
    (r"lockstep train .*--device c\b", lambda s: re.sub(r" --set train\.steps=\d+", "", s) + " --set train.steps=2", "fewer steps: a device in C is slow"),
    (r"--mesh auto .*model\.layers=48", lambda s: s.replace("model.layers=48", "model.layers=8").replace("train.batch=4096", "train.batch=512")
     .replace("virtual_workers=512", "virtual_workers=64"), "saves seconds of planning"),
    (r"bench train .*model\.(width=256|context=2048)", lambda s: re.sub(r"model\.(layers|width|context)=(\d+)", lambda m: f"model.{m[1]}={int(m[2]) // 4}", s),
     "a smaller model"),
    (r"--batches 8,16,32,64", lambda s: s.replace("8,16,32,64", "8,16"), "fewer runs"),
    (r"\bpython3? \S+\.py", lambda s: re.sub(r"\bpython3? \S+\.py", "./hello", s), "NumPy may be missing; make check-python runs the program"),
    (r"LOCKSTEP_LINKS=", lambda s: s.replace("LOCKSTEP_LINKS=links.yaml ", ""), "not measured here"),
]
MPIRUN = ("mpirun --oversubscribe" + (" --allow-run-as-root" if os.getuid() == 0 else "")
          if shutil.which("mpirun") else None)
ALL_CASES = "LOCKSTEP_ALL_CASES" in os.environ
LONG = re.compile(r"(build/)?lockstep (bench|plan|report --scaling|tune) [^;|&]*$")
START = re.compile(r"(\$ )?(export |for \w+ in |do )?([A-Z_]+=\S+ )*"
                   r"(lockstep|\S*/lockstep(-sim)?|mpirun|srun)( |$)")


def commands(path):
    """Returns the command lines of a document's code blocks: (line number, text)."""
    lines = open(path, encoding="utf-8").read().split("\n")
    found, i, fenced, shown = [], 0, False, False
    while i < len(lines):
        number, line = i + 1, lines[i]
        i += 1
        shown = shown and (line.startswith("    ") or not line)  # below a line with a prompt: what it prints
        if line.startswith("```"):
            fenced = not fenced
            continue
        if not fenced and not line.startswith("    "):
            continue
        text = line.strip()
        shown = shown or text.startswith("$ ")
        if shown and not text.startswith("$ "):
            continue
        if not (START.match(text) or (text.startswith("for ") and "lockstep " in text)):
            continue
        while text.endswith("\\") and i < len(lines):
            text = text[:-1] + lines[i].strip()
            i += 1
        found.append((number, re.sub(r"\s+# .*", "", text)))
    return found


def make_scratch():
    """Makes a directory like the root of a built checkout, with small models; each document gets a
    copy."""
    top = tempfile.mkdtemp(prefix="lockstep-documents-")
    for name in ("build/tests", "configs", "bin", "tmp"):
        os.makedirs(os.path.join(top, name))
    shutil.copytree(os.path.join(ROOT, "configs/machines"), os.path.join(top, "configs/machines"))
    shutil.copytree(os.path.join(ROOT, "configs/spaces"), os.path.join(top, "configs/spaces"))
    shutil.copy(os.path.join(ROOT, "LICENSE"), top)
    shutil.copytree(os.path.join(ROOT, "docs"), os.path.join(top, "docs"))  # directories of texts
    shutil.copy(os.path.join(ROOT, "configs/machines/v100.yaml"), os.path.join(top, "machine.yaml"))
    text = open(os.path.join(ROOT, "LICENSE"), encoding="utf-8").read()
    for config in glob.glob(os.path.join(ROOT, "configs/*.yaml")):
        small = re.sub(r"^( +)(\w+):( +)([\d.e-]+)", lambda m: m[1] + m[2] + ":" + m[3] +
                       SMALL.get(m[2], m[4]), open(config, encoding="utf-8").read(), flags=re.M)
        small = small.replace("vocab: 50257", "vocab: 300")
        if "format: chat" in small:
            small = small.replace("context: 16", "context: 64")
        lines = PAIRS if "loss: dpo" in small else CHATS
        open(os.path.join(top, "configs", os.path.basename(config)), "w", encoding="utf-8").write(small)
        for path in re.findall(r"^ +(?:val_)?path: (\S+)", small, flags=re.M):
            if os.path.isabs(path):
                continue  # the system's file, which must not be written
            path = os.path.join(top, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w", encoding="utf-8").write(lines if path.endswith(".jsonl") else text)
    tiny = open(os.path.join(top, "configs/tiny.yaml"), encoding="utf-8").read()
    mine = re.sub(r"( +min_lr:).*", r"\1 1e-5", tiny)  # a user's own config
    open(os.path.join(top, "configs/mine.yaml"), "w", encoding="utf-8").write(mine)
    open(os.path.join(top, "chats.jsonl"), "w", encoding="utf-8").write(CHATS)
    for at in ("build/lockstep", "bin/lockstep"):
        os.symlink(PROGRAM, os.path.join(top, at))
    sim = os.path.join(BUILD, "tests/lockstep-sim")
    os.symlink(sim, os.path.join(top, "build/tests/lockstep-sim"))
    subprocess.run(["cc", os.path.join(ROOT, "examples/hello.c"), "-I" + os.path.join(ROOT, "include"),
                    "-L" + BUILD, "-llockstep", "-Wl,-rpath," + BUILD, "-o",
                    os.path.join(top, "hello")], check=True)
    with open(os.path.join(top, "model.gguf"), "wb") as model:
        subprocess.run([os.path.join(ROOT, "tests/weights/write_gguf.py"), "whole"], stdout=model, check=True)
    subprocess.run([PROGRAM, "import", "model.gguf", "-o", "models/smollm2"], cwd=top, check=True,
                   stdout=subprocess.DEVNULL)
    return top


def environment(top):
    env = {k: v for k, v in os.environ.items() if not k.startswith("LOCKSTEP_")}
    env["PATH"] = os.path.join(top, "bin") + ":" + env["PATH"]
    env["LOCKSTEP_PLUGINS"] = os.path.join(BUILD, "plugins")  # an installed program finds them itself
    return env


def run(top, line):
    r = subprocess.run(["bash", "-c", "set -e; " + line], cwd=top, env=environment(top), timeout=240,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, errors="replace")
    return r.returncode == 0, r.stdout


def parse(top, line):
    r = subprocess.run(["bash", "-c", line + " --no-such-option"], cwd=top, env=environment(top),
                       timeout=240, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, errors="replace")
    return r.returncode == 2 and "--no-such-option" in r.stdout, r.stdout


def scale(top, line):
    """Runs `lockstep scale RUN N` on a training run, which is started for it and then stopped."""
    folder = shlex.split(line)[2]
    shutil.rmtree(os.path.join(top, folder), ignore_errors=True)
    run_ = subprocess.Popen([PROGRAM, "train", "configs/demo.yaml", "-n", "2", "-o", folder, "--set",
                             "train.steps=1000000"], cwd=top, env=environment(top),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):  # until it has begun to listen
        good, said = run(top, line)
        if good or run_.poll() is not None:
            break
        time.sleep(0.05)
    run_.send_signal(signal.SIGTERM)
    code = run_.wait()
    shutil.rmtree(os.path.join(top, folder), ignore_errors=True)  # later lines resume a short run
    run(top, f"lockstep train configs/demo.yaml -n 2 -o {folder}")
    return good and code == 75, said + ("" if code == 75 else f"the run ended with {code}")


def make_base(top, line):
    """Makes the run whose weights another run begins with."""
    base = re.search(r"train\.from=(\S+)", line)
    if base and not os.path.exists(os.path.join(top, base[1])):
        run(top, f"lockstep train configs/mine.yaml -n 1 -o {base[1]}")


def check_document(name, scratch):
    failed, count, lines = 0, {"run": 0, "parsed": 0}, commands(os.path.join(ROOT, name))
    if not lines:
        return failed, count
    top = tempfile.mkdtemp(prefix="lockstep-documents-")
    shutil.copytree(scratch, top, symlinks=True, dirs_exist_ok=True)
    for number, printed in lines:
        line, why = printed, []
        for pattern, change, reason in RULES:
            if re.search(pattern, line):
                line = change(line)
                why.append(reason)
        if LONG.match(line) and not name.startswith("docs/guide/") and not ALL_CASES:
            line = "parse " + line
            why.append("left to make check-slow")
        if line.startswith("parse "):
            how, (good, said) = "parsed", parse(top, line[6:])
        elif re.match(r"\S*lockstep scale ", line):
            how, (good, said) = "run", scale(top, line)
        else:
            if re.search(r"lockstep train configs/\S+ .*-o (\S+)", line) and "--resume" not in line:
                folder = re.search(r"-o (\S+)", line)[1].rstrip(";")
                shutil.rmtree(os.path.join(top, folder), ignore_errors=True)
            make_base(top, line)
            how, (good, said) = "run", run(top, line)
        count[how] += 1
        changed = "" if line == printed else f"\n    as: {line}  ({'; '.join(why)})"
        print(f"{'ok' if good else 'FAILED'}: {name}:{number}: {printed}{changed}")
        if not good:
            failed += 1
            print("    " + "\n    ".join(said.strip().split("\n")[-12:]))
    shutil.rmtree(top, ignore_errors=True)
    return failed, count


def check_shipped():
    """Plans configs and machine files as they are shipped. Configs that begin with a published model,
    which is not there, are run by the documents."""
    failed = checked = 0
    configs = [c for c in sorted(glob.glob("configs/*.yaml", root_dir=ROOT))
               if "from: models/" not in open(os.path.join(ROOT, c), encoding="utf-8").read()]
    lines = [f"plan {c} -n {n}" for c in configs for n in (1, 2, 4)]
    lines += [f"plan configs/demo.yaml -n 2,4 --machine {m}"
              for m in sorted(glob.glob("configs/machines/*.yaml", root_dir=ROOT))]
    for line in lines:
        r = subprocess.run([PROGRAM] + line.split(), cwd=ROOT, text=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=240)
        checked += 1
        failed += r.returncode != 0
        print(f"{'FAILED' if r.returncode else 'ok'}: lockstep {line}")
        if r.returncode:
            print("    " + r.stderr.strip())
    return failed, checked


PLACEHOLDER = re.compile(r"^\(?[A-Z][A-Z0-9_ ]{3,}\)?$|\b(TODO|FIXME|XXX|TBD)\b|\?\?\?|\{\{[A-Z]")


def check_placeholders(names):
    """What a writer meant to replace: a line of capitals alone, as (TABLE), TODO, ??? and the like."""
    failed = 0
    for name in names:
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if not line.startswith("    ") and PLACEHOLDER.search(line.rstrip()):
                    print(f"FAILED: {name}:{number}: a placeholder: {line.strip()[:80]}")
                    failed += 1
    return failed


def main():
    names = sorted(n for d in DOCUMENTS for n in glob.glob(d, root_dir=ROOT))
    every = document_links.documents(ROOT)
    failed, links = document_links.check_links(ROOT, every)
    failed += check_placeholders(every)
    few, names = len(sys.argv) > 2, sys.argv[2:] or names
    bad, shipped = (0, 0) if few else check_shipped()
    failed += bad
    total = {"run": 0, "parsed": 0}
    scratch = make_scratch()
    document_examples.add_samples(scratch)
    shown = given = 0
    for name in names:
        lines = commands(os.path.join(ROOT, name))
        bad, count = document_examples.check_shown(PROGRAM, ROOT, name, lines)
        failed, shown = failed + bad, shown + count
        bad, count = document_examples.check_examples(run, ROOT, name, scratch)
        failed, given = failed + bad, given + count
        bad, count = check_document(name, scratch)
        failed += bad
        for k in total:
            total[k] += count[k]
    shutil.rmtree(scratch, ignore_errors=True)
    print(f"{links} links; {shipped} plans of shipped files; {total['run']} command lines of {len(names)} documents "
          f"run, {total['parsed']} parsed; {shown} outputs compared, {given} examples in YAML planned; "
          f"{failed} failed")
    if few:
        return 1 if failed else 0
    if total["run"] < 20 or shipped < 10 or shown < 2 or given < 20:
        print("too few were found: have the documents moved?")
        failed += 1
    return 1 if failed else 0


sys.exit(main())
