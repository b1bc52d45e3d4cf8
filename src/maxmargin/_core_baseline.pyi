# The compiled core's interface; core/bindings.cpp is the implementation.
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maxmargin.types import Indices, Tell, Vector

class Data:
    @staticmethod
    def dense(values: NDArray[np.floating]) -> Data: ...
    @staticmethod
    def sparse(
        values: NDArray[np.floating],
        indices: NDArray[np.signedinteger],
        offsets: NDArray[np.signedinteger],
        columns: int,
    ) -> Data: ...
    def without_zeros(self, budget: Budget) -> Data | None: ...
    def take(self, order: Indices) -> Data: ...
    @property
    def sorted(self) -> bool: ...
    @property
    def count(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def stored(self) -> int: ...

class CompactData:
    @property
    def count(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def stored(self) -> int: ...

class MonomialData:
    def __init__(
        self, base: Data, lowest: int, scales: list[float], once: bool, shared_repeats: bool
    ) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def stored(self) -> int: ...

class Budget:
    def __init__(self, seconds: float, threads: int) -> None: ...
    def stop(self) -> None: ...
    def part(self, seconds: float) -> Budget: ...
    @property
    def seconds_left(self) -> float: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def spent(self) -> bool: ...

class Iterate:
    scale: float
    mass: float
    counted: float
    squared_norm: float
    beta: float
    beta_sum: float
    def __init__(self, v: Vector, u: Vector) -> None: ...
    def rescale(self) -> None: ...

class Monomials:
    def __init__(
        self, columns: int, lowest: int, scales: list[float], once: bool, shared_repeats: bool
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def expand_dense(self, data: Data, out: NDArray[np.floating], budget: Budget) -> None: ...
    def expand_sparse(
        self,
        data: Data,
        offsets: NDArray[np.signedinteger],
        indices: NDArray[np.signedinteger],
        values: NDArray[np.floating],
        budget: Budget,
    ) -> None: ...

class Place:
    @property
    def line(self) -> int: ...
    @property
    def line_begin(self) -> int: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...

class ParsedRows:
    @property
    def lines(self) -> int: ...
    @property
    def faulty(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def too_narrow(self) -> bool: ...
    @property
    def largest(self) -> int: ...
    @property
    def largest_place(self) -> Place: ...
    @property
    def fault(self) -> str: ...
    @property
    def fault_place(self) -> Place: ...

class GrowingBytes:
    def append(self, array: NDArray[np.generic]) -> None: ...
    def take(self, type: str) -> NDArray[np.generic]: ...

class KernelSum:
    def __init__(self, terms: list[tuple[float, list[tuple[str, str, float, float, int]]]]) -> None: ...

class SpareMemory:
    def __init__(self) -> None: ...

class CacheCounts:
    def __init__(self) -> None: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def rows_computed(self) -> int: ...
    @property
    def rows_found(self) -> int: ...

class KernelMatrix:
    def __init__(
        self,
        data: Data,
        kernel: KernelSum,
        order: Indices,
        begins: Indices,
        cache_bytes: int,
        single: bool,
        counts: CacheCounts | None = None,
        spare: SpareMemory | None = None,
    ) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def encoding(self) -> str: ...
    @property
    def cached_bytes(self) -> int: ...
    @property
    def computed_rows(self) -> int: ...
    @property
    def keeps_all(self) -> bool: ...
    @property
    def dear(self) -> bool: ...
    def subset(self, which: Indices) -> KernelMatrix: ...
    def add(self, which: Indices, changes: Vector, f: Vector, budget: Budget) -> None: ...

class SmallSystem:
    def scale(self, factor: float) -> None: ...

class Hessian:
    def __init__(self, count: int, regulariser: Vector) -> None: ...
    def update(self, curvatures: Vector, add: Callable[[Vector], None]) -> None: ...
    def scale(self, factor: float) -> None: ...
    @property
    def lower(self) -> NDArray[np.float64]: ...

class SecondOrderMethod:
    def steps(self, system: object, most: int, until: float, budget: Budget) -> int: ...
    @property
    def relative_gap(self) -> float: ...
    @property
    def finished(self) -> bool: ...
    @property
    def primal(self) -> float: ...
    @property
    def v(self) -> Vector: ...
    @property
    def margins(self) -> Vector: ...
    @property
    def multipliers(self) -> Vector: ...
    @property
    def combined(self) -> Vector: ...
    @property
    def curvatures(self) -> Vector: ...

class NewtonMethod(SecondOrderMethod):
    def __init__(self, loss: str, labels: Vector, costs: Vector, regulariser: Vector) -> None: ...
    def begin(self, system: object, v: Vector, margins: Vector, budget: Budget) -> None: ...

class LagrangianOptions:
    stiffness: float
    def __init__(self, *, stiffness: float, raise_by: float, small_part: float) -> None: ...

class AugmentedLagrangian(SecondOrderMethod):
    options: LagrangianOptions
    def __init__(
        self, options: LagrangianOptions, labels: Vector, costs: Vector, regulariser: Vector
    ) -> None: ...
    def begin(
        self,
        system: object,
        v: Vector,
        margins: Vector,
        alpha: Vector | None,
        combined: Vector | None,
        budget: Budget,
    ) -> None: ...
    @property
    def stiffness(self) -> float: ...
    @property
    def best_primal(self) -> float: ...
    @property
    def best_dual(self) -> float: ...
    @property
    def alpha(self) -> Vector: ...
    @property
    def best_v(self) -> Vector: ...
    @property
    def best_multipliers(self) -> Vector: ...

class SmallOptions:
    def __init__(
        self,
        *,
        sweeps: int = 0,
        relaxation: float = 1.0,
        bias_reach: float = 1.0,
        first_part: float = 1.0,
        lagrangian: LagrangianOptions = ...,
        most: int,
        until: float,
        seed: int,
    ) -> None: ...

class SmallClass:
    def __init__(self, labels: Vector, costs: Vector, regulariser: Vector) -> None: ...
    @property
    def v(self) -> Vector: ...
    @property
    def multipliers(self) -> Vector: ...
    @property
    def steps(self) -> int: ...
    @property
    def finished(self) -> bool: ...

class WorkingSet:
    def __init__(self, matrix: KernelMatrix, size: int, seed: int) -> None: ...
    def run(
        self,
        low: Vector,
        high: Vector,
        labels: Vector,
        beta: Vector,
        f: Vector,
        rounds: int,
        budget: Budget,
    ) -> tuple[int, float, float, float, float]: ...

class SequentialMinimalOptimization:
    def __init__(
        self, matrix: KernelMatrix, diagonal: Vector, second_order: bool, shrinking: bool
    ) -> None: ...
    def run(
        self,
        low: Vector,
        high: Vector,
        labels: Vector,
        beta: Vector,
        f: Vector,
        most: int,
        tolerance: float,
        budget: Budget,
    ) -> tuple[int, int, float, float, float, bool]: ...

def instruction_sets() -> list[str]: ...
def kernel_encoding(kernel: KernelSum, data: Data) -> str: ...
def kernel_diagonal(kernel: KernelSum, data: Data, out: Vector) -> None: ...
def kernel_block(
    kernel: KernelSum,
    first: Data,
    first_which: Indices,
    second: Data,
    second_which: Indices,
    out: Vector,
    budget: Budget,
) -> None: ...
def solve_small(
    matrix: Vector,
    order: Indices,
    begins: Indices,
    labels: Vector,
    costs: Vector,
    alpha: Vector,
    margins: Vector,
    values: Vector,
    tol: float,
    tiny: int,
    most_rounds: int,
    budget: Budget,
) -> list[int]: ...
def kernel_expansions(
    kernel: KernelSum,
    support: Data,
    support_which: Indices,
    coefficients: Vector,
    segments: Indices,
    targets: Data,
    target_which: Indices,
    out: Vector,
    single: bool,
    budget: Budget,
    tell: Tell | None = None,
) -> None: ...
def kernel_dual_ascent(
    matrix: KernelMatrix,
    squared: bool,
    coordinates: Vector,
    order: Indices,
    scores: Vector,
    bias: float,
    bias_curvature: float,
    budget: Budget,
) -> tuple[float, float, float, float, bool]: ...
def shuffle(order: Indices, state: int) -> int: ...
def draw(order: Indices, bound: int, state: int) -> int: ...
def weighted_quantile(
    values: Vector, weights: Vector, level: float, ridge: float
) -> tuple[float, float]: ...
def dot(a: Vector, b: Vector) -> float: ...
def loss_sum(loss: str, margins: Vector, costs: Vector) -> float: ...
def multipliers(loss: str, margins: Vector, costs: Vector, out: Vector) -> None: ...
def dual_gain(loss: str, alpha: Vector, costs: Vector) -> float: ...
def largest_violation(loss: str, margins: Vector, alpha: Vector, costs: Vector) -> float: ...
def row_classes(
    margins: Vector, alpha: Vector, costs: Vector, by_margins: bool, out: NDArray[np.int8]
) -> None: ...
def make_feasible(alpha: Vector, labels: Vector, upper: Vector, balanced: bool) -> None: ...
def best_intercept(loss: str, scores: Vector, labels: Vector, costs: Vector, ridge: float) -> float: ...
def column_ranges(data: Data, which: Indices, low: Vector, high: Vector) -> None: ...
def read_columns(data: Data, which: Indices, columns: Indices, out: Vector) -> None: ...
def scores(data: Data | MonomialData, w: Vector, out: Vector, budget: Budget) -> None: ...
def combine(
    data: Data | CompactData | MonomialData, coefficients: Vector, out: Vector, budget: Budget
) -> None: ...
def add_rows(
    data: Data | CompactData | MonomialData, order: Indices, coefficients: Vector, w: Vector
) -> None: ...
def squared_norms(data: Data | MonomialData, out: Vector, budget: Budget) -> None: ...
def without_private_columns(data: Data, budget: Budget) -> tuple[CompactData, Vector] | None: ...
def parse_libsvm(
    text: NDArray[np.uint8],
    *,
    wide: bool,
    single: bool,
    first_index: int,
    columns: int,
    drop_extra: bool,
    labels_optional: bool,
    skip_faulty: bool,
) -> tuple[
    tuple[NDArray[np.floating], NDArray[np.signedinteger], NDArray[np.int32], Vector], ParsedRows
]: ...
def subgradient(
    data: Data | MonomialData,
    loss: str,
    labels: Vector,
    costs: Vector,
    w: Vector,
    b: float,
    gradient: Vector,
    budget: Budget,
) -> tuple[float, float]: ...
def dual_coordinate_ascent(
    data: Data | CompactData | MonomialData,
    squared: bool,
    coordinates: Vector,
    order: Indices,
    w: Vector,
    bias: float,
    bias_curvature: float,
    relaxation: float,
    above: float,
    below: float,
    budget: Budget,
) -> tuple[int, float, float, float, float, float]: ...
def go_on(
    data: Data | CompactData | MonomialData,
    squared: bool,
    coordinates: Vector,
    order: Indices,
    w: Vector,
    bias: float,
    bias_curvature: float,
    alpha_before: Vector,
    w_before: Vector,
) -> tuple[float, float]: ...
def stochastic_subgradient(
    data: Data | MonomialData,
    loss: str,
    labels: Vector,
    weights: Vector,
    norms: Vector,
    order: Indices,
    batch: int,
    steps: Vector,
    lambda_: float,
    radius: float,
    bias_feature: float,
    bias_shrinks: bool,
    iterate: Iterate,
    lengths: Vector,
    next_: int,
    threshold: float,
    budget: Budget,
) -> tuple[int, int, bool]: ...
def solve_small_classes(
    data: Data, loss: str, classes: list[SmallClass], options: SmallOptions, budget: Budget
) -> None: ...
def small_system(data: Data | MonomialData, regulariser: Vector) -> SmallSystem: ...
def add_outer_products(
    data: Data | MonomialData, coefficients: Vector, lower: Vector, budget: Budget
) -> None: ...
def curvature_product(
    data: Data | MonomialData, curvatures: Vector, p: Vector, bias: float, out: Vector, budget: Budget
) -> float: ...
def inner_products(
    data: Data | CompactData | MonomialData, first: Indices, second: Indices, out: Vector, budget: Budget
) -> None: ...
def scores_of(
    data: Data | CompactData | MonomialData, order: Indices, w: Vector, out: Vector, budget: Budget
) -> None: ...
def gather(
    data: Data | MonomialData, order: Indices, factors: Vector, out: Vector, budget: Budget
) -> None: ...
def line_search(
    loss: str,
    costs: Vector,
    centre: Vector,
    stiffness: float,
    margins: Vector,
    changes: Vector,
    slope: float,
    curvature: float,
    budget: Budget,
) -> float: ...
