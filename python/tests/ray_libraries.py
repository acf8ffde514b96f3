"""Ray Train and Ray Tune on a Ray of this machine. Needs ray[train,tune], and PyTorch for the first, so
it is no part of test_*.py: scripts/check_ray.sh runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import ray  # type: ignore[import-not-found,unused-ignore]
import trained
from launch import ROOT
from ray import tune

import lockstep.ray

SETS = ["checkpoint.every=20", "train.eval_every=20", "train.steps=40", "optim.min_lr=0"]
OPTIONS = [word for value in SETS for word in ("--set", value)]


def hash_of(run: Path) -> str:
    found: dict[str, Any] = json.loads(trained.lockstep("ckpt", "hash", str(run), "--json"))
    return str(found["weights"])


def loop(settings: dict[str, Any]) -> None:
    """Three steps of DDP; reports losses with all their bits."""
    import torch
    import torch.distributed as dist
    from ray import train
    from ray.train.torch import prepare_model

    torch.manual_seed(0)
    net = prepare_model(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)))
    assert isinstance(net, torch.nn.parallel.DistributedDataParallel)
    assert dist.get_backend() == settings["backend"]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(3):
        g = torch.Generator().manual_seed(10 * step + dist.get_rank())
        x = torch.randn(16, 8, generator=g)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        with tempfile.TemporaryDirectory() as top:
            torch.save(net.module.state_dict(), os.path.join(top, "weights.pt"))
            checkpoint = train.Checkpoint.from_directory(top) if dist.get_rank() == 0 else None
            metrics = {"step": step, "loss": float(total).hex()}
            train.report(metrics, checkpoint=checkpoint)


class Libraries(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        os.chdir(ROOT)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()

    def storage(self) -> str:
        return str(trained.TOP / self.id().split(".")[-1])


@unittest.skipUnless(importlib.util.find_spec("torch"), "there is no PyTorch")
class Train(Libraries):
    def train(self, backend: str) -> Any:
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        trainer = TorchTrainer(
            loop, train_loop_config={"backend": backend},
            torch_config=lockstep.ray.TorchConfig(backend=backend),
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(name=backend, storage_path=self.storage()),
        )  # fmt: skip
        return trainer.fit()

    def test_trainer(self) -> None:
        """Losses and weights are those of Gloo."""
        import torch

        self.assertEqual(lockstep.ray.TorchConfig().backend, "lockstep")
        results = [self.train(backend) for backend in ("lockstep", "gloo")]
        self.assertEqual(*[r.metrics["loss"] for r in results])
        weights = []
        for r in results:
            with r.checkpoint.as_directory() as folder:
                weights.append(torch.load(os.path.join(folder, "weights.pt")))
        for name, tensor in weights[0].items():
            self.assertTrue(torch.equal(tensor, weights[1][name]), name)


class Tune(Libraries):
    def tuner(self, space: dict[str, Any], config: Any, options: list[str] = OPTIONS) -> Any:
        train = lockstep.ray.trainable("configs/tiny.yaml", options=options)
        run = tune.RunConfig(storage_path=self.storage(), verbose=0)
        return tune.Tuner(train, param_space=space, tune_config=config, run_config=run)

    def test_grid(self) -> None:
        """Metrics and weights are those of `lockstep train` with the same keys."""
        space = {"optim": {"lr": tune.grid_search([3e-3, 1e-4])}, "optim.warmup": 2}
        results = self.tuner(space, tune.TuneConfig(metric="val_loss", mode="min")).fit()
        self.assertEqual([r.error for r in results], [None, None])
        best = results.get_best_result()
        self.assertEqual(best.config["optim"]["lr"], 3e-3)
        self.assertEqual((best.metrics["step"], best.metrics["workers"]), (40, 1))
        alone = trained.TOP / "alone-tune"
        more = ["--set", "optim.lr=3e-3", "--set", "optim.warmup=2"]
        trained.lockstep("train", "configs/tiny.yaml", "-n", "1", "-o", str(alone), *OPTIONS, *more)
        records = [json.loads(x) for x in (alone / "metrics.jsonl").read_text().splitlines()]
        losses = [r["val_loss"] for r in records if "val_loss" in r]
        self.assertEqual(best.metrics["val_loss"], losses[-1])
        self.assertEqual(
            sorted(set(best.metrics_dataframe["val_loss"].dropna())), sorted(set(losses))
        )
        with best.checkpoint.as_directory() as folder:
            self.assertEqual(hash_of(Path(folder)), hash_of(alone))

    def test_population(self) -> None:
        """The worse trial goes on from the checkpoint of the better one, with another rate."""
        scheduler = tune.schedulers.PopulationBasedTraining(
            time_attr="step", metric="loss", mode="min", perturbation_interval=20,
            hyperparam_mutations={"optim.lr": [3e-3, 1e-3]}, quantile_fraction=0.5,
            resample_probability=1.0, synch=True,
        )  # fmt: skip
        space = {"optim.lr": tune.grid_search([3e-3, 1e-6])}
        options = [*OPTIONS, "--set", "train.steps=60"]
        results = self.tuner(space, tune.TuneConfig(scheduler=scheduler), options).fit()
        self.assertEqual([r.error for r in results], [None, None])
        for r in results:
            self.assertEqual(r.metrics["step"], 60)
            self.assertLess(r.metrics["loss"], 5.0)  # at 1e-6 it would be above 5.5
            self.assertGreater(r.config["optim.lr"], 1e-4)

    def test_refused(self) -> None:
        results = self.tuner({"optim.lr": -1.0}, tune.TuneConfig()).fit()
        self.assertIn("lockstep train ended with exit code 1", str(results[0].error))
        self.assertIn("optim.lr", str(results[0].error))


if __name__ == "__main__":
    unittest.main()
