// SPDX-License-Identifier: BSD-3-Clause
// Passes over the rows of a matrix, all sums in double precision and in an order that does not change.

#define LANES 32
#define ROWS_AT_ONCE 4096  // rows that one block of threads adds up, for 32 columns

extern "C" {

// out_i = <w, x_i>, or |x_i|^2 where w is x_i itself; a warp for each row.
__global__ void row_products(const STORED* X, Index count, int columns, const double* w, int squares, double* out) {
  Index row = (Index)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
  if (row >= count) return;
  const STORED* x = X + row * columns;
  double sum = 0;
  for (int j = threadIdx.x % LANES; j < columns; j += LANES) {
    double value = (double)x[j];
    sum += value * (squares ? value : w[j]);
  }
  for (int step = LANES / 2; step; step >>= 1) sum += __shfl_down_sync(EVERY_LANE, sum, step);
  if (threadIdx.x % LANES == 0) out[row] = sum;
}

// partial_j = sum of coefficient_i x_ij over some rows: 32 columns and as many groups of rows for a block.
__global__ void __launch_bounds__(1024)
    column_sums(const STORED* X, Index count, int columns, const double* coefficients, double* partial) {
  __shared__ double sums[LANES][LANES + 1];
  int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, column = blockIdx.x * LANES + lane;
  Index begin = (Index)blockIdx.y * ROWS_AT_ONCE, end = min(begin + ROWS_AT_ONCE, count);
  double sum = 0;
  if (column < columns)
    for (Index i = begin + group; i < end; i += LANES) {
      double coefficient = coefficients[i];
      if (coefficient != 0) sum += coefficient * (double)X[i * columns + column];
    }
  sums[group][lane] = sum;
  __syncthreads();
  if (group == 0 && column < columns) {
    double all = 0;
    for (int k = 0; k < LANES; ++k) all += sums[k][lane];
    partial[(Index)blockIdx.y * columns + column] = all;
  }
}

}  // extern "C"
