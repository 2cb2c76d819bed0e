"""One training step at the paper's size: against plain JAX, and against the machine's limit.

    python benchmarks/step.py --json

A step draws its windows, differentiates the loss of both Hamiltonians on clean and on noised
windows, and updates weights and codes. `ratio_to_plain` divides by the time of benchmarks/plain.py;
`fraction_of_peak` is against the speed of a large matrix product in the same run. Both come in a
second form counted in CPU seconds instead of wall-clock time (`*_cpu`), which other programs on
the same machine disturb far less.
"""

import sys

import equinox as eqx
import jax
import jax.random as jr

import plain
from cases import Training, default_sized, paper_sized, recipe, states
from dhn.blocks import cut_windows
from dhn.models.dhn import DHNModel
from dhn.models.networks.mlp import MLPNetwork
from dhn.models.stage import LinkedStage
from dhn.training.config import TrainingConfig
from dhn.training.step import make_optimiser
from timing import arguments, interleaved, matmul, report


def transformer_flops(block_size: int, windows: int, width: int, layers: int) -> float:
    """Floating-point operations of the layers' products and of attention in one step.

    A product is computed once forward and once for the gradient by the states; differentiating
    both costs two more each: 6 in all. Two Hamiltonians, clean and noised: 4 passes.
    """
    tokens = 1 + 2 * block_size
    full = tokens * 24 * width**2 + 4 * tokens**2 * width
    last = tokens * 4 * width**2 + 20 * width**2 + 4 * tokens * width
    return 6.0 * 4 * windows * ((layers - 1) * full + last)


def mlp_flops(windows: int, inputs: int, width: int, layers: int) -> float:
    """The same count for the default model: one Hamiltonian, clean pass only."""
    return 6.0 * windows * 2 * (layers * width**2 + inputs * width)


def plain_step(model: DHNModel, training: TrainingConfig):
    """The step as one would write it first: loss, gradient and optimiser in one jit."""
    optimiser = make_optimiser(training)
    weights, static = eqx.partition(model, eqx.is_inexact_array)
    data, shape, n = states(1000), model.window_shapes[0], training.batch_size
    rows, starts = jr.randint(jr.key(2), (2, n), 0, 100)
    window = cut_windows(data, rows, starts, *shape)
    codes = jr.normal(jr.key(3), (n, model.latent_size))

    @jax.jit
    def step(weights, moments, codes, key):
        def loss(weights, codes):
            return plain.loss(eqx.combine(weights, static), (window,), (codes,), key)

        value, (by_weight, by_code) = jax.value_and_grad(loss, argnums=(0, 1))(weights, codes)
        updates, moments = optimiser.update(by_weight, moments, weights)
        weights = jax.tree.map(lambda w, u: w - training.learning_rate * u, weights, updates)
        return value, weights, moments, codes - training.code_learning_rate * by_code

    moments = optimiser.init(weights)
    return lambda: step(weights, moments, codes, jr.key(4))


def measure(block_size: int, layer_norm: bool, windows: int, chunk: int, seconds: float) -> dict:
    config = paper_sized(block_size, layer_norm)
    training = recipe(config, batch_size=windows, chunk_size=chunk)
    fast = Training(config, training)
    product, product_flops = matmul()
    best = interleaved(
        {"plain": plain_step(fast.model, training), "fast": fast, "matmul": product}, seconds
    )
    flops = transformer_flops(block_size, windows, config.network.width, config.network.depth)
    return {
        "network": "transformer" + (", LayerNorm" if layer_norm else ""),
        "block_size": block_size,
        "windows_per_second": windows / best["fast"].wall,
        **against_peak(flops, product_flops, best),
        "ratio_to_plain": best["plain"].wall / best["fast"].wall,
        "ratio_to_plain_cpu": best["plain"].cpu / best["fast"].cpu,
    }


def against_peak(flops: float, product_flops: float, best: dict) -> dict:
    rate, limit = flops / best["fast"].wall, product_flops / best["matmul"].wall
    per_core, core = flops / best["fast"].cpu, product_flops / best["matmul"].cpu
    return {
        "gflops": rate / 1e9,
        "peak_gflops": limit / 1e9,
        "fraction_of_peak": rate / limit,
        "fraction_of_peak_cpu": per_core / core,
        "cores_busy": best["fast"].cpu / best["fast"].wall,
    }


def measure_default(windows: int, chunk: int, seconds: float) -> dict:
    config = default_sized()
    fast = Training(config, recipe(config, batch_size=windows, chunk_size=chunk))
    product, product_flops = matmul()
    many = 10
    best = interleaved({"fast": lambda: fast(many), "matmul": product}, seconds)
    stage = fast.model.finest
    assert isinstance(stage, LinkedStage) and isinstance(stage.right.network, MLPNetwork)
    inputs = stage.right.network.embed.shape[0]
    flops = many * mlp_flops(windows, inputs, config.network.width, config.network.depth)
    return {
        "network": "mlp (default)",
        "block_size": config.block_size,
        "windows_per_second": many * windows / best["fast"].wall,
        **against_peak(flops, product_flops, best),
    }


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--blocks", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--layer-norm", action="store_true", help="also with LayerNorm and GELU")
    parser.add_argument("--windows", type=int, default=1024, help="windows per step")
    parser.add_argument("--chunk", type=int, default=0, help="windows at once; 0 is the default")
    parser.add_argument("--seconds", type=float, default=10.0, help="measuring time per row")
    args = parser.parse_args(argv)
    rows = [
        measure(b, layer_norm, args.windows, args.chunk, args.seconds)
        for layer_norm in ([False, True] if args.layer_norm else [False])
        for b in args.blocks
    ]
    rows.append(measure_default(args.windows, args.chunk, args.seconds))
    report("training step", rows, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
