// SPDX-License-Identifier: BSD-3-Clause
// Working sets of a round, solved by moving pairs, and the scores of all rows brought up to date.

#define MOVERS 256            // threads that move pairs of a set
#define MOVER_WARPS (MOVERS / 32)
#define EACH (SET / MOVERS)   // neighbouring rows of the set that each of them looks after
#define ROWS_OF_WARP (32 * EACH)
#define LEAST_BEND 1e-3f  // of a way, as a share of its pair's own: of less, hardly a digit would be right

// A value and a slot in one number that grows with the value; the slot takes the place of its last ten bits. Of
// equal values the first slot has the largest. It is never 0.
__device__ __forceinline__ unsigned key_of(float value, int slot) {
  return (ordered(value) & ~(SET - 1u)) | (unsigned)(SET - 1 - slot);
}
__device__ __forceinline__ int slot_of(unsigned key) { return SET - 1 - (int)(key & (SET - 1u)); }

// A thread's values of a row of a set's matrix; 0 where there is no such row.
__device__ __forceinline__ void row_of(const float* __restrict__ matrix, int row, float (&out)[EACH]) {
  float4 four = row < 0 ? make_float4(0.f, 0.f, 0.f, 0.f)
                        : __ldg((const float4*)(matrix + (Index)row * SET) + threadIdx.x);
  out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
}

extern "C" {

// The kernel on the rows of each set: 256 blocks of threads a part.
__global__ void __launch_bounds__(256)
    form_matrices(const STORED* X, int columns, const double* numbers, const Index* begins, const Index* rows,
                  const int* sets, const double* facts, float* matrices) {
  __shared__ REAL a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
  __shared__ Index first[TILE], second[TILE];
  int part = blockIdx.y, down = blockIdx.x / (SET / TILE), right = blockIdx.x % (SET / TILE), thread = threadIdx.x;
  int size = (int)facts[(Index)part * FACTS + 5];
  if (facts[(Index)part * FACTS + 4] == 0 || down * TILE >= size || right * TILE >= size) return;
  const int* set = sets + (Index)part * SET;
  int height = min(TILE, size - down * TILE), width = min(TILE, size - right * TILE);
  if (thread < height) first[thread] = rows[begins[part] + set[down * TILE + thread]];
  if (thread >= TILE && thread - TILE < width)
    second[thread - TILE] = rows[begins[part] + set[right * TILE + thread - TILE]];
  Sums sums[4][4];
  __syncthreads();
  tile_of_sums(X, columns, first, height, second, width, sums, a, b);
  float* out = matrices + (Index)part * SET * SET;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int row = thread / 16 * 4 + i, column = thread % 16 * 4 + j;
      if (row < height && column < width)
        out[(Index)(down * TILE + row) * SET + right * TILE + column] = (float)VALUE(sums[i][j]);
    }
}

// The same out of a matrix of all rows.
__global__ void gather_matrices(const float* matrix, Index count, const Index* begins, const Index* rows,
                                const int* sets, float* matrices) {
  int part = blockIdx.y, i = blockIdx.x;
  const int* set = sets + (Index)part * SET;
  if (set[i] < 0) return;
  const float* from = matrix + rows[begins[part] + set[i]] * count;
  float* out = matrices + ((Index)part * SET + i) * SET;
  for (int j = threadIdx.x; j < SET; j += blockDim.x) out[j] = set[j] < 0 ? 0.f : from[rows[begins[part] + set[j]]];
}

// Pairs of multipliers of each set, the worst violator with the partner that gains most, until the violation
// is a share of what it was. With a price, one multiplier may also move alone, and pays b for it. Told are the
// changes of beta that are not 0, with their places, and in ``counts`` how many pairs moved and how many these are.
//
// One pair waits for the one before it, so what counts is the time from one to the next: few threads, which
// have little to wait for each other, three barriers a pair, keys that hold a value and its slot, single precision
// (alpha itself moves by the sum of its steps, and rests exactly on its walls), and a step that every thread
// computes for itself. Of rows that are alike but for a ten-thousandth, any may be taken.
//
// And fewer pairs: a pair d = e_i - e_j takes the last way p along, as in core/kernel/small_dual.hpp,
//
//   p <- d + turn p,   turn = -d'Kp / p'Kp,   bend p'Kp = d'Kd - (d'Kp)^2 / p'Kp before,
//
// so that it does not undo what was gained along p. Where a multiplier would meet its wall the pair goes alone,
// and where it does not reach its own best point, the next one does, too. To ask for walls takes a barrier, which
// waits no longer than the line of the matrix that is on its way meanwhile.
__global__ void __launch_bounds__(MOVERS)
    move_pairs(const float* __restrict__ matrices, const Index* begins, const int* sets, double* alpha,
               const double* f, const float* y, const double* costs, float share, float least, int most,
               float* changes, int* places, int* counts, int priced, const double* price) {
  __shared__ unsigned best_up[MOVER_WARPS], best_down[MOVER_WARPS], best_gain[MOVER_WARPS];
  __shared__ float4 risers[MOVER_WARPS];   // of the best of each warp: its slope, how far it may rise, its (Kp)_i, K_ii
  __shared__ float4 partners[MOVER_WARPS];  // what it leads by, the bend, how far it may fall, its (Kp)_j
  __shared__ int ranks[MOVER_WARPS];
  int part = blockIdx.x, thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, reader = lane % MOVER_WARPS;
  matrices += (Index)part * SET * SET;
  changes += (Index)part * SET, places += (Index)part * SET;
  float label[EACH], slope[EACH], own[EACH], may_rise[EACH], may_fall[EACH], b = priced ? (float)*price : 0.f;
  float moved[EACH];            // of beta
  float way[EACH], felt[EACH];  // p and K p
  int place[EACH];
  for (int k = 0; k < EACH; ++k) {
    int slot = thread * EACH + k;
    place[k] = sets[(Index)part * SET + slot];
    bool real = place[k] >= 0;
    Index at = begins[part] + place[k];
    double start = real ? alpha[at] : 0, left = real ? costs[at] - start : 0;
    label[k] = real ? y[at] : 1.f;
    slope[k] = real ? (float)((double)label[k] - f[at]) : 0.f;
    own[k] = real ? matrices[(Index)slot * SET + slot] : 1.f;
    may_rise[k] = (float)(label[k] > 0 ? left : start);
    may_fall[k] = (float)(label[k] > 0 ? start : left);
    moved[k] = way[k] = felt[k] = 0.f;
  }
  float enough = -1.f, bend = 0.f;  // of the last way; 0: there is none to take along
  int pairs = 0;
  for (; pairs < most; ++pairs) {
    float4 riser = make_float4(-INFINITE, 0.f, 0.f, 0.f);
    float down = -INFINITE;
    int i = thread * EACH;
    for (int k = 0; k < EACH; ++k) {
      float rising = may_rise[k] > 0 ? slope[k] : -INFINITE;
      if (rising > riser.x) riser = make_float4(rising, may_rise[k], felt[k], own[k]), i = thread * EACH + k;
      down = fmaxf(down, may_fall[k] > 0 ? -slope[k] : -INFINITE);
    }
    unsigned key = key_of(riser.x, i), of_warp = largest_of_warp(key), down_of_warp = largest_of_warp(ordered(down));
    if (key == of_warp) best_up[warp] = of_warp, risers[warp] = riser, best_down[warp] = down_of_warp;
    __syncthreads();
    i = slot_of(largest_of_warp(best_up[reader]));
    down = -unordered(largest_of_warp(best_down[reader]));
    riser = risers[i / ROWS_OF_WARP];
    float up = riser.x;
    if (up == -INFINITE) i = -1;
    if (priced && b > up) up = b, i = -1;
    if (priced) down = fminf(down, b);
    if (i < 0) riser = make_float4(up, INFINITE, 0.f, 0.f);
    float violation = up - down;
    if (enough < 0) enough = fmaxf(least, share * violation);
    if (!(violation > enough)) break;
    float with_i[EACH], with_j[EACH], gain = -1.f;
    float4 partner = make_float4(0.f, 1.f, 0.f, 0.f);
    row_of(matrices, i, with_i);
    int j = thread * EACH;
    for (int k = 0; k < EACH; ++k) {
      float ahead = may_fall[k] > 0 ? fmaxf(up - slope[k], 0.f) : 0.f;
      float of_pair = fmaxf(riser.w + own[k] - 2.f * with_i[k], 1e-12f), gained = __fdividef(ahead * ahead, of_pair);
      if (gained > gain) gain = gained, partner = make_float4(ahead, of_pair, may_fall[k], felt[k]), j = thread * EACH + k;
    }
    key = key_of(gain, j), of_warp = largest_of_warp(key);
    if (key == of_warp) best_gain[warp] = of_warp, partners[warp] = partner;
    __syncthreads();
    j = slot_of(largest_of_warp(best_gain[reader]));
    partner = partners[j / ROWS_OF_WARP];
    if (priced && i >= 0) {
      float of_one = fmaxf(riser.w, 1e-12f), ahead = up - b;
      if (__fdividef(ahead * ahead, of_one) > __fdividef(partner.x * partner.x, partner.y))
        partner = make_float4(ahead, of_one, INFINITE, 0.f), j = -1;
    }
    row_of(matrices, j, with_j);
    float common = riser.z - partner.w, turn = bend > 0 ? -__fdividef(common, bend) : 0.f;
    float bent = partner.y + turn * common, step = __fdividef(partner.x, bent);
    if (!(bent > LEAST_BEND * partner.y)) turn = 0.f;
    if (turn != 0) {
      bool meets = false;
      for (int k = 0; k < EACH; ++k) {
        int slot = thread * EACH + k;
        float far = step * (turn * way[k] + (slot == i ? 1.f : 0.f) - (slot == j ? 1.f : 0.f));
        meets |= far > may_rise[k] || -far > may_fall[k];
      }
      if (__syncthreads_or(meets)) turn = 0.f;
    }
    if (turn == 0) {
      float whole = __fdividef(partner.x, partner.y);
      step = fminf(fminf(whole, riser.y), partner.z);
      bent = step < whole ? 0.f : partner.y;
    }
    bend = bent;
    for (int k = 0; k < EACH; ++k) {  // exactly 0 is left where all of a way is used
      int slot = thread * EACH + k;
      way[k] = turn * way[k] + (slot == i ? 1.f : 0.f) - (slot == j ? 1.f : 0.f);
      felt[k] = turn * felt[k] + with_i[k] - with_j[k];
      slope[k] -= step * felt[k];
      may_rise[k] -= step * way[k], may_fall[k] += step * way[k], moved[k] += step * way[k];
    }
  }
  float change[EACH];
  int many = 0;
  for (int k = 0; k < EACH; ++k) {
    change[k] = 0.f;
    if (place[k] < 0 || moved[k] == 0.f) continue;
    Index at = begins[part] + place[k];
    double cost = costs[at], start = alpha[at], end = fmin(fmax(start + label[k] * moved[k], 0.0), cost);
    if ((label[k] > 0 ? may_rise[k] : may_fall[k]) <= 0) end = cost;
    if ((label[k] > 0 ? may_fall[k] : may_rise[k]) <= 0) end = 0;
    alpha[at] = end;
    change[k] = (float)((end - start) * label[k]);
    many += change[k] != 0.f;
  }
  int upto = many;
  for (int step = 1; step < 32; step <<= 1) {
    int other = __shfl_up_sync(EVERY_LANE, upto, step);
    if (lane >= step) upto += other;
  }
  if (lane == 31) ranks[warp] = upto;
  __syncthreads();
  int rank = upto - many, all = 0;
  for (int k = 0; k < MOVER_WARPS; ++k) {
    if (k < warp) rank += ranks[k];
    all += ranks[k];
  }
  for (int k = 0; k < EACH; ++k)
    if (change[k] != 0.f) changes[rank] = change[k], places[rank] = place[k], ++rank;
  if (thread == 0) counts[2 * part] = pairs, counts[2 * part + 1] = all;
}

// f += K change for 64 rows of a part; a task is a part and the first of its rows.
__global__ void __launch_bounds__(256)
    update_scores(const STORED* X, int columns, const double* numbers, const Index* begins, const Index* rows,
                  const int* places, const float* changes, const int* counts, const Index* tasks, double* f) {
  __shared__ REAL a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
  __shared__ Index first[TILE], second[TILE];
  __shared__ float weights[TILE];
  __shared__ double partial[TILE][17];
  Index part = tasks[2 * (Index)blockIdx.x], from = tasks[2 * (Index)blockIdx.x + 1], begin = begins[part];
  int thread = threadIdx.x, x = thread % 16, y = thread / 16, many = counts[2 * part + 1];
  if (many == 0) return;
  int height = (int)min((Index)TILE, begins[part + 1] - begin - from);
  if (thread < height) first[thread] = rows[begin + from + thread];
  double sum[4] = {0, 0, 0, 0};
  for (int start = 0; start < many; start += TILE) {
    int width = min(TILE, many - start);
    __syncthreads();
    if (thread < width) {
      second[thread] = rows[begin + places[part * SET + start + thread]];
      weights[thread] = changes[part * SET + start + thread];
    }
    __syncthreads();
    Sums sums[4][4];
    tile_of_sums(X, columns, first, height, second, width, sums, a, b);
    for (int i = 0; i < 4; ++i) {
      float four = 0;
      for (int j = 0; j < 4; ++j)
        if (x * 4 + j < width) four += weights[x * 4 + j] * (float)VALUE(sums[i][j]);
      sum[i] += four;
    }
  }
  for (int i = 0; i < 4; ++i) partial[y * 4 + i][x] = sum[i];
  __syncthreads();
  if (thread < height) {
    double total = 0;
    for (int k = 0; k < 16; ++k) total += partial[thread][k];
    f[begin + from + thread] += total;
  }
}

// The same out of a matrix of all rows, for 256 rows of a part: four groups of threads take a share of the changes each.
__global__ void __launch_bounds__(SET)
    update_from_matrix(const float* matrix, Index count, const Index* begins, const Index* rows, const int* places,
                       const float* changes, const int* counts, const Index* tasks, double* f) {
  __shared__ Index from_row[SET];
  __shared__ float weights[SET];
  __shared__ double partial[4][256];
  Index part = tasks[2 * (Index)blockIdx.x], from = tasks[2 * (Index)blockIdx.x + 1], begin = begins[part];
  int lane = threadIdx.x & 255, group = threadIdx.x >> 8, many = counts[2 * part + 1];
  if (many == 0) return;
  if (threadIdx.x < many) {
    from_row[threadIdx.x] = rows[begin + places[part * SET + threadIdx.x]] * count;
    weights[threadIdx.x] = changes[part * SET + threadIdx.x];
  }
  __syncthreads();
  Index i = from + lane;
  double sum = 0;
  if (i < begins[part + 1] - begin) {
    const float* column = matrix + rows[begin + i];
    int w = many * group / 4, end = many * (group + 1) / 4;
    for (; w + 8 <= end; w += 8) {
      float eight = 0;
      for (int k = 0; k < 8; ++k) eight += column[from_row[w + k]] * weights[w + k];
      sum += eight;
    }
    for (; w < end; ++w) sum += column[from_row[w]] * weights[w];
  }
  partial[group][lane] = sum;
  __syncthreads();
  if (group == 0 && i < begins[part + 1] - begin)
    f[begin + i] += partial[0][lane] + partial[1][lane] + partial[2][lane] + partial[3][lane];
}

// f += K change for some rows out of their products with the rows that changed: a warp for each row.
__global__ void add_products(const float* products, Index count, int many, const float* squares,
                             const float* other_squares, const double* numbers, const float* changes, double* f) {
  Index i = (Index)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (i >= count) return;
  int lane = threadIdx.x % 32;
  double sum = 0;
  for (int j = lane; j < many; j += 32) {
    REAL product = products[i * many + j];
    Sums sums{product, fmaxf(squares[i] + other_squares[j] - 2.f * product, 0.f), 0, 0};
    sum += changes[j] * (float)VALUE(sums);
  }
  for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(EVERY_LANE, sum, step);
  if (lane == 0) f[i] += sum;
}

// Products of some rows with all become values of the kernel, in place; ``squares`` are the products of rows with
// themselves.
__global__ void finish_values(float* products, const float* squares, Index count, Index first, const double* numbers) {
  Index j = (Index)blockIdx.x * blockDim.x + threadIdx.x, i = first + blockIdx.y;
  if (j >= count) return;
  REAL product = products[(Index)blockIdx.y * count + j];
  REAL square = i == j ? (REAL)0 : (REAL)fmaxf(squares[i] + squares[j] - 2.f * product, 0.f);
  Sums sums{product, square, 0, 0};
  products[(Index)blockIdx.y * count + j] = (float)VALUE(sums);
}

}  // extern "C"
