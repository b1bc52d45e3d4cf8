# SPDX-License-Identifier: BSD-3-Clause
"""The sizes that decide which way a problem is solved, or in which form.

Each says what it counts and why it is what it is. The measurements behind them are in docs/how_to_choose.md
and docs/results. Whoever needs one takes it from here, so that "small" means the same everywhere.
"""

from __future__ import annotations

# Linear problems, counted in stored values.

TINY_VALUES = 2_000
"""Stored values up to which a sweep takes microseconds: such problems are solved to rounding error, so that
equal problems (a row twice, a row of weight two) give equal models."""
STEPS_TO_ROUNDING = 1_000
"""Steps that such problems get for that, where no limit is set: a method that is slower than this gains
nothing that anybody waits for."""
ONE_THREAD_VALUES = 50_000
"""Stored values up to which threads would cost more than the problems of a fit."""
FEW_VALUES = 130_000
"""Stored values up to which calls cost more than passes, so that second-order steps follow one another
inside the core: a thousand rows of 128 columns have fewer."""
CACHED_VALUES = 1_000_000
"""Stored values of sparse rows up to which a cache of 16 MB holds them with their multipliers: beyond,
every visit of a row in a shuffled order waits for the memory."""
LARGE_VALUES = 30_000_000
"""Stored values from which two passes are too long to wait for after Ctrl-C, so that certificates are made
on the way, often enough to have a recent one."""

# Linear problems, counted in rows and columns.

MOST_LABELS = 1 << 20
"""Rows times classes up to which the labels of all classes may be in memory at once, for one call."""
SAMPLED_ROWS = 1 << 14
"""Rows from which the solution of a sample of them may be the start: fewer are too few to spare any."""
ROWS_PER_COLUMN = 200
"""Rows of a sample for each column, that it may tell enough about the others."""
SAMPLE_AT_LEAST, SAMPLE_AT_MOST = 20, 8
"""A sample has one row in twenty at least, and one in eight at most: else it costs as much as it saves."""
FULL_STEP_COLUMNS, FULL_STEP_COLUMNS_OF_HINGE = 320, 512
"""Unknowns up to which steps that are compiled whole take less time than those in NumPy and BLAS, however
many rows there are: no copies, no calls, and the matrix stays in the second-level cache. With the hinge few
rows are free, and fewer change from step to step."""
SHORT_ROW, SHORT_ROW_OF_HINGE = 60, 40
"""Stored values in a row on average, up to which the sweeps of dual ascent before second-order steps save
less than they take."""
FEW_COLUMNS = 20
"""Columns up to which few rows can be free, so that the k of an augmented Lagrangian may grow faster."""
CHUNK_COLUMNS = 4_000
"""Columns up to which every chunk answers with a Hessian of its own: one of this size takes 128 MB."""
UNBLOCKED_COLUMNS = 48
"""Columns up to which the Hessian stays in the first-level cache, row after row, and needs no blocks."""
UNBLOCKED_COLUMNS_OF_FEW = 128
"""The same where there are ``FEW_VALUES``: columns below which all steps are taken inside the core."""
LARGEST_SIDE = 6_000
"""Rows or columns of a factor, whichever are fewer: one of this size takes 300 MB and about two seconds."""
LARGEST_INTERIOR_SIDE = 4_800
"""Rows or columns of the interior point's factor: it takes 180 MB and about a second."""
AFFORDABLE_STEP = 1e9
"""Multiply-adds for the matrix of one step of the interior point, where it is the last resort: well below a
second."""
MATRIX_COLUMNS_OF_PAIRS = 300
"""Columns up to which the matrix of a ranking's Newton step is written out: it takes as many products with
the pairs as there are columns, and conjugate gradients rarely take fewer than a tenth of that."""
MATRIX_VALUES_OF_PAIRS = 1 << 26
"""Rows times columns of X up to which that is done, since X is held as a matrix of 512 MB at most."""

# Problems with a kernel, counted in rows.

TINY_ROWS = 50
"""Rows up to which a problem is solved to rounding error, so that equal problems give equal models."""
QUICK_ROWS = 1_000
"""Rows up to which a problem is solved in one compiled call, without working sets: the steps of the loop
would cost more than the solution."""
QUICK_SPARSE_ROWS = 4_000
"""The same for sparse rows: values of the kernel take so long there that each should be computed once, for
the solver and for the proof."""
QUICK_SHARED_ROWS = 4_000
"""The same where several fits on the same rows share the values among them, as those of a cross-validation:
a copy of 4,000 x 4,000 values takes 128 MB for each thread, and a tenth of a second."""
MOST_ROUNDS, FEW_ROUNDS = 100, 20
"""Rounds of at most 20 steps for each row in such a call; harder problems are left to the loop. A linear
kernel gets the few: what is not easy then is soon solved on the columns."""
ALL_KERNEL_VALUES = 2_000
"""Rows up to which all values of the kernel are computed once, and shared by problems and certificates."""
ONE_THREAD_PRODUCTS = 1_000_000
"""Products for all values of a kernel up to which a thread takes as long to begin as they take: 100 us."""
ONE_THREAD_ROWS = 5_000
"""Rows up to which several fits with few stored values go side by side, each on one thread: steps on so few
are too short for two, and the whole ends soon."""
SHARE_OF_CACHE = 0.5
"""The share of ``cache_size`` that all these values may take."""
DOUBLE_ROWS = 2_000
"""Rows up to which a solver's kernel matrix is in double precision from the start, beyond it in single."""
MOST_FREE_ROWS = 3_000
"""Rows of the largest matrix that Newton's method on free multipliers factors, in about half a second."""
LONG_PROOF_ROWS = 2_000
"""Rows beyond which a proof costs as much as many steps on a few of them, and waits for these."""
SHRINK_FROM = 5_000
"""Rows from which it pays to put some aside that have no reason to move."""
CARD_PROBLEMS = 1024
"""Problems that a GPU solves side by side, at most: each takes 4 MB for the matrix of its working set."""
SPLIT_FROM = 5_000
"""Rows from which it pays to look for blocks that the kernel cannot couple."""
WORK_ON_PAIRS = 0.01
"""Steps on pairs of rows, each times the rows of its set, before columns have their turn: in units of n^3,
which a factor costs. They then take about as long as the steps on a factor of a third of the columns."""
LEAST_WORK_ON_PAIRS = 1e7
"""Such steps that take no longer than to try another way: a few milliseconds."""
WORK_ON_ACTIVE_SETS = 1.0
"""Factors of active sets, each as the third power of its rows, before the interior point has its turn on
the whole matrix: in units of n^3, of which that takes ten to twenty."""
SHARE_OF_ACTIVE = 0.5
"""The rows of a system of active sets as a share of all, from which it is left to the interior point, whose
ten steps take no longer than dozens of such systems."""
FACTORS_ON_POINTS = 50
"""Factors of the interior point on the whole matrix, with those that rounding keeps from being one: ten to
twenty-five where it has an answer, and hundreds where rounding is all that it sees."""
FACTORED_ROWS = 6_000
"""Rows up to which a kernel matrix may be factored, where these steps were too few."""
LAGRANGIAN_ROWS = 50_000
"""Rows up to which an augmented Lagrangian looks for those with a free multiplier: a product of some
thousands of these with all rows takes a tenth of a second."""
ROWS_OF_LAGRANGIAN, LEAST_ROWS_OF_LAGRANGIAN = 8_000, 1_000
"""Rows of its systems, at most: a factor of so many takes three seconds of the processor. And those for
which there has to be memory: with fewer, few problems would gain."""
ROOM_OF_LAGRANGIAN = 1.9
"""The memory of a system, in units of its matrix: the factor, and what is kept of a border."""
WORK_ON_START = 1.6e10
"""Rows times the squared number of columns of the factor whose answer it begins at: a step on them takes a
third of a second of the processor, and seven are enough."""
FEW_FACTOR_COLUMNS, MOST_FACTOR_COLUMNS = 1_000, 2_500
"""Columns of such a factor. Up to the first number the interior point is the fastest way; with the second,
and as many rows, one of its steps takes half a second."""
ROWS_PER_FACTOR_COLUMN = 4
"""Rows for each column of a factor, from which it is the fastest way with more columns, too."""
WORK_ON_FACTOR = 1.2e11
"""Rows times the squared number of columns of a factor of more rows than these: a step on them takes a
second or two of two cores, and eight to twenty are enough."""
STEPS_AFTER_COLUMNS = 200
"""Steps on pairs of rows where columns have failed: they hardly do better."""
LONG_SWEEPS = 200
"""C times the squared length of a row, from which sweeps over all classes at once are too many: about as
many visits take a multiplier from one wall to the other."""
CLASS_SYSTEM = 1_000
"""Weights of all classes, up to which a system of them is factored in some milliseconds."""
FIRST_STEPS_WITH_NU = 200
"""Steps on a problem with nu, after which it is looked whether its tube is best without any width."""

# Other ways, each of which pays up to some size.

LARGEST_PRIMAL_PROGRAM = 200_000
"""Stored values of the primal form of a quadratic program: beyond, the memory and the time of the
factor are out of proportion."""
LARGEST_DUAL_PROGRAM = 2_000
"""Rows of its dual form: P has their square as its size."""
LEAST_COEFFICIENTS_VALUES = 1_000_000
"""Values of rows up to which the least coefficients that make a w are looked for, with a linear kernel."""
BATCHED_MEANS_ROWS = 10_000
"""From this many rows on, k-means reads small batches of them."""
FEW_ROWS_PROOF_VALUES = 1_000_000
"""The size limit, in stored values, of the least squares that look for a proof with few rows."""
FRACTION_EQUATIONS = 24
"""Equations that are solved in fractions: about a tenth of a second."""
EXACT_HULL_VALUES = 10_000_000
"""Values of rows up to which an exact proof is looked for that hulls meet."""
UNSEEN_COLUMNS_VALUES = 20_000
"""Values of X up to which columns are looked at only where something else is suspicious: such a fit takes
some hundred microseconds, and to look takes ten."""
DOUBTED_SCORES = 1_000_000
"""Pairs of rows and support vectors, at most, of which values of the kernel are computed for a warning."""
SORTED_TARGETS = 10_000
"""Labels from which on to look whether there are only two different ones is quicker than to sort them."""
