"""Which settings are possible together: for random_faults.py, by `lockstep plan`."""
import json
import random
import re
import subprocess

from faulty_run import sets

MOST_IDLE = 20  # keys that may be left out of one draw


def possible(options, path, n, lists, spare, config=None):
    """Leaves out of the lists of settings, and of `config`, which is written to `path`, keys that do
    not act, and those of `spare` that do not go with the others. None: the rest is possible with n
    workers; else the reason why it is not."""
    for _ in range(MOST_IDLE):
        if config:
            write_config(path, config)
        plan = [options.lockstep, "plan", path, "-n", str(n)]
        done = subprocess.run(plan + sets(sum(lists, [])), capture_output=True, text=True)
        if done.returncode == 0:
            return None
        if not any(leave_out(key, config or {}, lists) for key in excess(done.stderr, spare)):
            break
    return done.stderr


def write_config(path, config):
    with open(path, "w") as f:
        json.dump(config, f)  # JSON is YAML as well


def excess(message, spare):
    """Keys of which one may be left out, so that settings become possible."""
    idle = re.search(r"([a-z_.0-9]+) acts only with ", message)
    if idle:
        return [idle[1]]
    before, without, after = message.partition(" does not go with ")
    if not without:
        return []
    named = re.findall(r"[a-z]+\.[a-z_.0-9]+", before.rpartition("yaml: ")[2] + " " +
                       after.partition(": the")[0])
    return [key for key in named if key in spare]


def leave_out(key, config, lists):
    """False: the key is not set."""
    section, _, name = key.partition(".")
    found = config.get(section, {}).pop(name, None) is not None
    for settings in lists:
        kept = [s for s in settings if not s.startswith(key + "=")]
        found = found or len(kept) < len(settings)
        settings[:] = kept
    return found


def draw_stages(options, path, bits, free):
    """Where the stages of a pipeline begin, for some of those of `free`; needs the config at `path`."""
    value = {f.partition("=")[0]: f.partition("=")[2] for f in free}
    n = int(value.get("parallel.mesh.pipe", 1)) * int(value.get("parallel.chunks", 1))
    if n == 1 or random.random() > 0.5:
        return []
    plan = [options.lockstep, "plan", path, "-n", "1", "--json"]
    done = subprocess.run(plan + sets(bits), capture_output=True, text=True)
    names = [layer["name"] for layer in json.loads(done.stdout)["layers"]] if done.stdout else []
    if len(names) < n:
        return []
    begins = sorted(random.sample(range(1, len(names)), n - 1))
    return ["parallel.stages=[%s]" % ", ".join(names[i] for i in begins)]
