#!/usr/bin/env python3
"""Trains with --mllog, and checks the logs with the compliance checker of the package mlperf-logging.

    check_mllog.py PROGRAM [LOG...]

The checker's own rules are used as they are, ruleset 6.1.0, but for the list of benchmarks: those of
bench/peers/mllog/. With LOGs these are checked, else logs of configs/tiny.yaml: of a run, of one that
was killed and resumed, and of several seeds; and logs with a fault must be refused."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import mlperf_logging

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ROOT / "bench" / "peers" / "mllog"
TARGET = "val_loss<=5.2"


def make_checker(folder):
    """The package, with our benchmarks in place of its own."""
    package = pathlib.Path(mlperf_logging.__file__).parent
    copy = folder / "checker" / "mlperf_logging"
    shutil.copytree(package, copy)
    rules = copy / "compliance_checker" / "training_6.1.0"
    for file in RULES.glob("*.yaml"):
        shutil.copy(file, rules)
    return copy.parent


def is_accepted(checker, log):
    command = [sys.executable, "-m", "mlperf_logging.compliance_checker", "--usage", "training",
               "--ruleset", "6.1.0", "--werror", "--log_output", "/dev/null", str(log)]
    done = subprocess.run(command, cwd=checker, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def expect(checker, log, accepted=True):
    good, output = is_accepted(checker, log)
    if good != accepted:
        sys.exit(f"{log}: {'refused' if accepted else 'accepted'}\n{output}")


def train(program, folder, name, *more, wait=True):
    command = [program, "train", "configs/tiny.yaml", "-n", "2", "-o", folder / name, "--mllog",
               folder / f"{name}.log", "--target", TARGET, "--submission", "benchmark=tiny",
               "--set", "train.eval_every=2", *more]
    child = subprocess.Popen([str(w) for w in command], cwd=ROOT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    if wait and child.wait() != 0:
        sys.exit(f"{' '.join(map(str, command))}: failed")
    return child


def killed_log(program, folder):
    """Kills the run three times once its log has grown, and continues it."""
    log = folder / "killed.log"
    more = ["--set", "checkpoint.every=1", "--resume", "--set", "train.steps=400",
            "--set", "optim.lr=3e-4"]
    for _ in range(3):
        size = log.stat().st_size if log.exists() else 0
        child = train(program, folder, "killed", *more, wait=False)
        until = time.monotonic() + 60
        while (not log.exists() or log.stat().st_size <= size) and time.monotonic() < until:
            time.sleep(0.01)
        child.kill()
        if child.wait() == 0:
            sys.exit("the run ended before it was killed")
    train(program, folder, "killed", *more)
    return log


def check_faults(checker, folder, log):
    """Logs with a fault are refused, so the rules are not idle."""
    lines = log.read_text().splitlines(keepends=True)
    def without(key):
        return [x for x in lines if f'"key": "{key}"' not in x]
    starts = [x for x in lines if '"key": "run_start"' in x]
    faults = {
        "no_stop": without("run_stop"),
        "no_seed": without("seed"),
        "two_starts": lines + starts,
        "no_evaluation": without("eval_accuracy"),
        "aborted": [x.replace('"success"', '"aborted"') for x in lines],
        "other": [x.replace('"value": "tiny"', '"value": "resnet"') for x in lines],
        "torn": lines[:-1] + [lines[-1][:40] + "\n"],
    }
    for name, text in faults.items():
        bad = folder / f"{name}.log"
        bad.write_text("".join(text))
        expect(checker, bad, accepted=False)
    return len(faults)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checker = make_checker(folder)
        for log in sys.argv[2:]:
            expect(checker, pathlib.Path(log).resolve())
            print(f"mllog: {log} is accepted")
        if sys.argv[2:]:
            return
        train(program, folder, "run")
        expect(checker, folder / "run.log")
        expect(checker, killed_log(program, folder))
        subprocess.run([program, "report", "--seeds", "3", "configs/tiny.yaml", "-n", "1", "-o",
                        folder / "seeds", "--mllog", folder / "logs", "--target", TARGET,
                        "--set", "train.eval_every=5"], cwd=ROOT, check=True, capture_output=True)
        logs = sorted((folder / "logs").glob("results/*/tiny/result_*.txt"))
        if [x.name for x in logs] != ["result_0.txt", "result_1.txt", "result_2.txt"]:
            sys.exit(f"logs of seeds: {logs}")
        for log in logs:
            expect(checker, log)
        faults = check_faults(checker, folder, folder / "run.log")
        print(f"mllog: {2 + len(logs)} logs are accepted, one of a run that was killed three times; "
              f"{faults} logs with a fault are refused")


main()
