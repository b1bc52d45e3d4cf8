// SPDX-License-Identifier: BSD-3-Clause
// Sums of kernel values in double precision, in an order that does not change: the scores of a certificate.

extern "C" {

// out_i = sum_j coefficient_j k(x_i, x_j) for 64 targets i of each block of threads, and all sources j.
__global__ void __launch_bounds__(256)
    expand(const STORED* X, int columns, const double* numbers, const Index* targets, Index target_count,
           const Index* sources, const double* coefficients, Index source_count, double* out) {
  __shared__ REAL a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
  __shared__ Index first[TILE], second[TILE];
  __shared__ double weights[TILE];
  __shared__ double partial[TILE][17];
  int thread = threadIdx.x, x = thread % 16, y = thread / 16;
  Index begin = (Index)blockIdx.x * TILE;
  int count = (int)min((Index)TILE, target_count - begin);
  if (thread < count) first[thread] = targets[begin + thread];
  double sum[4] = {0, 0, 0, 0};
  for (Index from = 0; from < source_count; from += TILE) {
    int width = (int)min((Index)TILE, source_count - from);
    __syncthreads();
    if (thread < width) {
      second[thread] = sources[from + thread];
      weights[thread] = coefficients[from + thread];
    }
    __syncthreads();
    Sums sums[4][4];
    tile_of_sums(X, columns, first, count, second, width, sums, a, b);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        if (x * 4 + j < width) sum[i] += weights[x * 4 + j] * VALUE(sums[i][j]);
  }
  for (int i = 0; i < 4; ++i) partial[y * 4 + i][x] = sum[i];
  __syncthreads();
  if (thread < count) {
    double total = 0;
    for (int k = 0; k < 16; ++k) total += partial[thread][k];
    out[begin + thread] = total;
  }
}

// The kernel of every row of one matrix with every row of another, 64 x 64 values for each block of threads.
// The rows of the second follow those of the first in X.
__global__ void __launch_bounds__(256)
    fill_values(const STORED* X, int columns, const double* numbers, Index rows, Index others, double* out) {
  __shared__ REAL a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
  __shared__ Index first[TILE], second[TILE];
  int thread = threadIdx.x;
  Index down = (Index)blockIdx.y * TILE, right = (Index)blockIdx.x * TILE;
  int height = (int)min((Index)TILE, rows - down), width = (int)min((Index)TILE, others - right);
  if (thread < height) first[thread] = down + thread;
  if (thread < width) second[thread] = rows + right + thread;
  __syncthreads();
  Sums sums[4][4];
  tile_of_sums(X, columns, first, height, second, width, sums, a, b);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int row = thread / 16 * 4 + i, column = thread % 16 * 4 + j;
      if (row < height && column < width) out[(down + row) * others + right + column] = VALUE(sums[i][j]);
    }
}

// Products of rows with others become values of the kernel, in place.
__global__ void finish_values(double* products, const double* squares, const double* other_squares, Index others,
                              const double* numbers) {
  Index j = (Index)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= others) return;
  double product = products[i * others + j];
  Sums sums{product, fmax(squares[i] + other_squares[j] - 2 * product, 0.0), 0, 0};
  products[i * others + j] = VALUE(sums);
}

// Products of signed bytes become values of the kernel: see gpu/bytes.py. All sums are whole numbers, and exact.
__global__ void values_of_bytes(const int* products, Index width, const double* shifts, const double* other_shifts,
                                const double* squares, const double* other_squares, double squared_unit, Index others,
                                const double* numbers, double* values) {
  Index j = (Index)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= others) return;
  double product = products[i * width + j] + shifts[i] + other_shifts[j];
  double square = squares[i] + other_squares[j] - 2 * product;
  Sums sums{squared_unit * product, squared_unit * square, 0, 0};
  values[i * others + j] = VALUE(sums);
}

// out_i = sum_j coefficient_j k(x_i, z_j), given the products of some rows with others: a block of threads a row.
__global__ void __launch_bounds__(256)
    sum_values(const double* products, const double* squares, const double* other_squares, Index others,
               const double* numbers, const double* coefficients, double* out) {
  __shared__ double partial[8];
  const double* own = products + (Index)blockIdx.x * others;
  double sum = 0;
  for (Index j = threadIdx.x; j < others; j += 256) {
    double product = own[j];
    Sums sums{product, fmax(squares[blockIdx.x] + other_squares[j] - 2 * product, 0.0), 0, 0};
    sum += coefficients[j] * VALUE(sums);
  }
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(EVERY_LANE, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0;
    for (int warp = 0; warp < 8; ++warp) total += partial[warp];
    out[blockIdx.x] = total;
  }
}

}  // extern "C"
