"""Draws lists of layers (model.kind: layers) for random_models.py: from any fields of a sample, with
branches, residuals, repeats, convolutions, attention, norms, several inputs and losses.
"""
import random

MSE, BINARY = "mean_squared_error", "binary_cross_entropy"
ACTIVATIONS = ["relu", "gelu", "silu", "sigmoid", "tanh"]


def chance(p):
    return random.random() < p


class Layers:
    """A list of layers that grows at random."""

    def __init__(self):
        self.list, self.names, self.has_batch_norm = [], 0, False

    def name(self):
        self.names += 1
        return "v%d" % self.names

    def add(self, *layers):
        self.list += layers

    def norm(self):
        """A norm of images."""
        kind = random.choice(["group_norm", "group_norm", "batch_norm"])
        self.has_batch_norm |= kind == "batch_norm"
        groups = {"groups": 2} if kind == "group_norm" else {}
        return {kind: dict(groups, relu=True) if chance(0.5) else groups}

    def branches(self, make, back):
        """Two layers of the same value, joined."""
        x, a, b = self.name(), self.name(), self.name()
        join = random.choice(["concat", "add", "multiply", "add_relu", "silu_gate"])
        self.add({random.choice(ACTIVATIONS): {"name": x}}, make(of=x, name=a), make(of=x, name=b),
                 {join: [a, b]})
        if join == "concat":
            self.add(back())

    def image(self, field, dims):
        """From an image to a vector."""
        h, w, channels = dims
        c = random.choice([2, 4])
        each = {"mean": [99] * channels, "deviation": [60] * channels}
        first = random.choice([None, {"affine": {"scale": 0.01, "shift": -1}}, {"normalize": each}])
        if first:
            kind = list(first)[0]
            self.add({kind: dict(first[kind], of=field)})
        conv = lambda **more: {"conv2d": dict(channels=c, kernel=random.choice([1, 3]), **more)}
        self.add(conv() if first else conv(of=field))
        for _ in range(random.choice([1, 2, 3])):
            kind = random.choice(["plain", "residual", "repeat", "branches", "transposed", "pool"])
            if kind == "plain":
                self.add(self.norm(), random.choice(ACTIVATIONS), conv())
            elif kind == "residual":
                layers = [self.norm(), random.choice(ACTIVATIONS), conv()]
                self.add({"residual": random.choice([layers, {"layers": layers,
                                                              "shortcut": [conv()]}])})
            elif kind == "repeat":
                layers = [conv(groups=2), {"residual": [self.norm(), conv()]}]
                self.add({"repeat": {"times": 2, "name": self.name(), "layers": layers}})
            elif kind == "branches":
                self.branches(conv, conv)
            elif kind == "transposed" and h * w < 64:
                self.add({"conv2d_transposed": {"channels": c, "kernel": 3, "stride": 2}})
            elif kind == "pool" and h > 2:
                self.add({random.choice(["max_pool", "average_pool"]): 2})
        self.add(random.choice(["mean_pool", "flatten"]))

    def tokens(self, field, dims):
        """From the patches of an image, by attention, to a vector."""
        patch = 8 if dims[0] > 2 else 1
        self.add({"affine": {"of": field, "scale": 0.01}}, {"patches": patch}, {"linear": 8})
        for _ in range(random.choice([1, 2])):
            norm, act = random.choice(["layer_norm", "rms_norm"]), random.choice(ACTIVATIONS)
            heads = {"heads": 2, "causal": chance(0.5)}
            self.add({"residual": [norm, {"linear": 24}, {"attention": heads}, {"linear": 8}]},
                     {"residual": [norm, {"linear": 16}, act, {"linear": 8}]})
        self.add({"mean": 0})

    def vector(self):
        """From a vector to a vector of 6 numbers."""
        linear = lambda **more: {"linear": dict(out=6, **more)}
        self.add(linear())
        for _ in range(random.choice([0, 1, 2])):
            act = random.choice(ACTIVATIONS)
            random.choice([
                lambda: self.add(act, linear()),
                lambda: self.add({"residual": ["layer_norm", act, linear()]}),
                lambda: self.add("rms_norm", {"scale": 0.5}, {"dropout": 0.2}),
                lambda: self.branches(linear, linear)])()


def draw_inputs(s, layers):
    """Adds layers that read what the set has. Returns the names of what they give."""
    seen = []

    def named(layer, **options):
        name = layers.name()
        layers.add({layer: dict(options, name=name)})
        seen.append(name)
    if s.image:
        (layers.tokens if chance(0.3) else layers.image)(*s.image)
        named(random.choice(ACTIVATIONS))
    if s.ids:
        named("embedding_sum", of=s.ids, rows=90, width=4, mean=chance(0.5))
    for field, rows in s.codes.items():
        named("embedding", of=field, rows=rows, width=3)
    for field, dims in s.numbers.items():
        if not s.image or chance(0.5):
            seen.append(field)
            if len(dims) > 1:
                seen.pop()
                named("flatten", of=field)
    return seen


def draw_layers(s):
    layers = Layers()
    seen = draw_inputs(s, layers)
    layers.add({"concat": seen} if len(seen) > 1 else {"linear": {"of": seen[0], "out": 5}})
    layers.vector()
    end = layers.name()
    layers.add({"tanh": {"name": end}})
    losses = []
    weight = s.weight if chance(0.3) else None
    for target, loss in s.targets.items():
        if target != weight and chance(0.5):
            layers.add({"linear": {"of": end, "out": 1, "name": "cost_" + target}})
            losses.append({loss: {"of": "cost_" + target, "target": target,
                                  "factor": random.choice([1, 0.01])}})
    if not losses or chance(0.5):
        layers.add({"linear": {"of": end, "out": s.classes, "name": "head"}})
        smoothing = {"smoothing": 0.1} if chance(0.3) else {}
        losses.append({"cross_entropy": dict(smoothing, of="head", target="label")})
    model = {"kind": "layers", "layers": layers.list, "loss": losses}
    if weight:
        model["sample_weight"] = weight
    return model, layers.has_batch_norm
