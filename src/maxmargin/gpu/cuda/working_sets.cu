// SPDX-License-Identifier: BSD-3-Clause
// One round of working sets, for all parts of a kernel problem at once: see solvers/gpu_working_sets.py.
//
// A part is a set of rows that the kernel does not couple with others. Its rows have one place after the
// other in all arrays, from begins[part] to begins[part + 1]; places are counted from the part's first one.
// beta_i = alpha_i y_i, and v_i = y_i - f_i is the slope of the dual by beta_i, f being the scores without b.

#define SET 1024              // rows of a working set
#define MOVERS 256            // threads that move pairs of a set
#define MOVER_WARPS (MOVERS / 32)
#define EACH (SET / MOVERS)   // neighbouring rows of the set that each of them looks after
#define ROWS_OF_WARP (32 * EACH)
#define NEW_OF_A_SIDE 256     // the worst violators that come to a set, at most, of those that rise and of those that fall
#define BINS 1024             // of a histogram of violations
#define FACTS 8               // numbers that are told of each part

__device__ __forceinline__ unsigned ordered(float value) {
  unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000u) ? ~bits : (bits | 0x80000000u);
}
__device__ __forceinline__ float unordered(unsigned bits) {
  return __uint_as_float((bits & 0x80000000u) ? (bits & 0x7fffffffu) : ~bits);
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned largest_of_warp(unsigned value) { return __reduce_max_sync(EVERY_LANE, value); }
#else
__device__ __forceinline__ unsigned largest_of_warp(unsigned value) {
  for (int step = 16; step; step >>= 1) value = max(value, __shfl_xor_sync(EVERY_LANE, value, step));
  return value;
}
#endif

// The largest value of all threads, and the first thread that has it. ``best`` and ``owner`` are shared, and
// may be used again after two more barriers.
__device__ __forceinline__ float largest(float value, int& who, unsigned* best, int* owner) {
  int thread = threadIdx.x;
  unsigned key = ordered(value), of_warp = largest_of_warp(key);
  unsigned has = __ballot_sync(EVERY_LANE, key == of_warp);
  if ((thread & 31) == 0) {
    best[thread >> 5] = of_warp;
    owner[thread >> 5] = thread + __ffs(has) - 1;
  }
  __syncthreads();
  unsigned mine = best[thread & 31], all = largest_of_warp(mine);
  who = owner[__ffs(__ballot_sync(EVERY_LANE, mine == all)) - 1];
  return unordered(all);
}

__device__ double sum_of_all(double value, double* shared) {
  for (int step = 16; step; step >>= 1) value += __shfl_down_sync(EVERY_LANE, value, step);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = value;
  __syncthreads();
  double all = 0;
  for (int warp = 0; warp < 32; ++warp) all += shared[warp];
  return all;
}

// How many threads before this one say yes, and how many there are in all; ``counts`` is shared.
__device__ int rank_among(bool yes, int* counts, int& all) {
  int thread = threadIdx.x;
  unsigned has = __ballot_sync(EVERY_LANE, yes);
  __syncthreads();
  if ((thread & 31) == 0) counts[thread >> 5] = __popc(has);
  __syncthreads();
  int before = __popc(has & ((1u << (thread & 31)) - 1));
  all = 0;
  for (int warp = 0; warp < 32; ++warp) {
    if (warp < (thread >> 5)) before += counts[warp];
    all += counts[warp];
  }
  return before;
}

// A number from 0 to 1 that is as good as random, of a row in a round.
__device__ __forceinline__ float noise(unsigned row, unsigned round) {
  unsigned bits = row * 2654435761u + round * 2246822519u;
  bits = (bits ^ (bits >> 15)) * 2246822519u;
  bits = (bits ^ (bits >> 13)) * 3266489917u;
  return (float)((bits ^ (bits >> 16)) >> 8) * (1.f / 16777216.f);
}

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

// What a row can do, and by how much it violates the conditions with an intercept of b.
struct Row {
  float slope;
  bool rises, falls;  // whether beta may
  __device__ Row(double alpha, double f, float y, double cost)
      : slope((float)((double)y - f)),
        rises(y > 0 ? alpha < cost : alpha > 0),
        falls(y > 0 ? alpha > 0 : alpha < cost) {}
  // The bin of its violation on a side, 0: rises, 1: falls; -1 where it has none. The worst violators are
  // neighbours of each other, and what one round does to them the next one undoes: so each gets noise, up to
  // half of the largest violation.
  __device__ int bin(int side, float b, const float* width, float noise) const {
    float violation = side ? b - slope : slope - b;
    if (!(side ? falls : rises) || !(violation > 0)) return -1;
    return min(BINS - 1, (int)((violation / width[side] + 0.5f * noise) * (BINS / 1.5f)));
  }
};

extern "C" {

// The facts of each part: the largest slope of a row that rises, the least of one that falls, the gap at b,
// the dual value, how many rows are new in the set, how many it has, b, and the sum of beta. And the sets: the
// new ones first, then those that were there, the latest first.
__global__ void __launch_bounds__(SET)
    select_rows(const Index* begins, const double* alpha, const double* f, const float* y, const double* costs,
                int* sets, unsigned char* marked, double* facts, unsigned round, int priced, const double* price) {
  __shared__ unsigned best[2][32];
  __shared__ int owner[2][32], counts[32], histogram[2][BINS], lowest[2], room[2], taken[2];
  __shared__ double shared[32];
  __shared__ int fresh[2 * NEW_OF_A_SIDE];
  int part = blockIdx.x, thread = threadIdx.x;
  Index begin = begins[part], count = begins[part + 1] - begin;
  alpha += begin, f += begin, y += begin, costs += begin, marked += begin;
  sets += (Index)part * SET;
  float up = -INFINITE, down = -INFINITE;
#pragma unroll 4
  for (Index i = thread; i < count; i += SET) {
    Row row(alpha[i], f[i], y[i], costs[i]);
    if (row.rises) up = fmaxf(up, row.slope);
    if (row.falls) down = fmaxf(down, -row.slope);
  }
  int who;
  up = largest(up, who, best[0], owner[0]);
  down = -largest(down, who, best[1], owner[1]);
  double middle = up == -INFINITE ? down : down == INFINITE ? up : 0.5 * ((double)up + down);
  double exact_b = priced ? *price : middle;
  float b = (float)exact_b;
  float width[2] = {fmaxf(up - b, 1e-30f), fmaxf(b - down, 1e-30f)};
  for (int k = thread; k < 2 * BINS; k += SET) histogram[k / BINS][k % BINS] = 0;
  __syncthreads();
  double gap = 0, dual = 0, balance = 0;
#pragma unroll 4
  for (Index i = thread; i < count; i += SET) {
    double lacking = 1.0 - y[i] * (f[i] + exact_b);
    gap += costs[i] * fmax(lacking, 0.0) - alpha[i] * lacking;
    dual += alpha[i] - 0.5 * alpha[i] * y[i] * f[i];
    balance += alpha[i] * y[i];
    Row row(alpha[i], f[i], y[i], costs[i]);
    for (int side = 0; side < 2; ++side) {
      int bin = row.bin(side, b, width, noise((unsigned)i, round));
      if (bin >= 0) atomicAdd(&histogram[side][bin], 1);  // of whole numbers: the order does not matter
    }
  }
  gap = sum_of_all(gap, shared);
  dual = sum_of_all(dual, shared);
  balance = sum_of_all(balance, shared);
  if (thread < 2) room[thread] = NEW_OF_A_SIDE, taken[thread] = 0;
  for (int side = 0; side < 2; ++side) {  // bins above the lowest are taken whole, of it as many as there is room for
    int upto = histogram[side][BINS - 1 - thread];
    for (int step = 1; step < 32; step <<= 1) {
      int other = __shfl_up_sync(EVERY_LANE, upto, step);
      if ((thread & 31) >= step) upto += other;
    }
    __syncthreads();
    if ((thread & 31) == 31) counts[thread >> 5] = upto;
    __syncthreads();
    for (int warp = 0; warp < (thread >> 5); ++warp) upto += counts[warp];
    int whole = __syncthreads_count(upto <= NEW_OF_A_SIDE);
    if (thread == 0) lowest[side] = BINS - 1 - whole;
    if (thread == whole - 1) room[side] = NEW_OF_A_SIDE - upto;
  }
  __syncthreads();
  int filled = 0, all;
  for (Index from = 0; from < count; from += SET) {
    Index i = from + thread;
    bool take = false, edge[2] = {false, false};
    if (i < count) {
      Row row(alpha[i], f[i], y[i], costs[i]);
      for (int side = 0; side < 2; ++side) {
        int bin = row.bin(side, b, width, noise((unsigned)i, round));
        take |= bin >= 0 && bin > lowest[side];
        edge[side] = bin >= 0 && bin == lowest[side];
      }
    }
    if (!__syncthreads_or(take || edge[0] || edge[1])) continue;
    for (int side = 0; side < 2; ++side) {
      int before = rank_among(edge[side], counts, all) + taken[side];
      take |= edge[side] && before < room[side];
      __syncthreads();
      if (thread == 0) taken[side] += all;
    }
    int place = filled + rank_among(take, counts, all);
    if (take && place < 2 * NEW_OF_A_SIDE) {
      fresh[place] = (int)i;
      marked[i] = 1;
    }
    filled = min(filled + all, 2 * NEW_OF_A_SIDE);
  }
  __syncthreads();
  int old = sets[thread];
  bool keep = old >= 0 && !marked[old];
  int place = filled + rank_among(keep, counts, all);
  if (keep && place < SET) sets[place] = old;
  if (thread < filled) sets[thread] = fresh[thread];
  if (thread >= filled + all) sets[thread] = -1;
  __syncthreads();
  if (thread < filled) marked[fresh[thread]] = 0;
  if (thread == 0) {
    double* out = facts + (Index)part * FACTS;
    out[0] = up, out[1] = down, out[2] = gap, out[3] = dual;
    out[4] = filled, out[5] = min(filled + all, SET), out[6] = exact_b, out[7] = balance;
  }
}

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
// have little to wait for each other, two barriers a pair, keys that hold a value and its slot, single precision
// (alpha itself moves by the sum of its steps, and rests exactly on its walls), and a step that every thread
// computes for itself. Of rows that are alike but for a ten-thousandth, any may be taken.
__global__ void __launch_bounds__(MOVERS)
    move_pairs(const float* __restrict__ matrices, const Index* begins, const int* sets, double* alpha,
               const double* f, const float* y, const double* costs, float share, float least, int most,
               float* changes, int* places, int* counts, int priced, const double* price) {
  __shared__ unsigned best_up[MOVER_WARPS], best_down[MOVER_WARPS], best_gain[MOVER_WARPS];
  __shared__ float up_of[MOVER_WARPS], lead_of[MOVER_WARPS], curve_of[MOVER_WARPS], diagonal[SET];
  __shared__ float rise[SET], fall[SET];  // how far beta may
  __shared__ int ranks[MOVER_WARPS];
  int part = blockIdx.x, thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, reader = lane % MOVER_WARPS;
  matrices += (Index)part * SET * SET;
  changes += (Index)part * SET, places += (Index)part * SET;
  float label[EACH], slope[EACH], own[EACH], may_rise[EACH], may_fall[EACH], b = priced ? (float)*price : 0.f;
  float moved[EACH];  // of beta
  int place[EACH];
  for (int k = 0; k < EACH; ++k) {
    int slot = thread * EACH + k;
    place[k] = sets[(Index)part * SET + slot];
    bool real = place[k] >= 0;
    Index at = begins[part] + place[k];
    double start = real ? alpha[at] : 0, left = real ? costs[at] - start : 0;
    label[k] = real ? y[at] : 1.f;
    slope[k] = real ? (float)((double)label[k] - f[at]) : 0.f;
    diagonal[slot] = own[k] = real ? matrices[(Index)slot * SET + slot] : 1.f;
    rise[slot] = may_rise[k] = (float)(label[k] > 0 ? left : start);
    fall[slot] = may_fall[k] = (float)(label[k] > 0 ? start : left);
    moved[k] = 0.f;
  }
  __syncthreads();
  float enough = -1.f;
  int pairs = 0;
  bool told = true;  // whether the others know how far this thread's rows may move
  for (; pairs < most; ++pairs) {
    float up = -INFINITE, down = -INFINITE;
    int i = thread * EACH;
    for (int k = 0; k < EACH; ++k) {
      float rising = may_rise[k] > 0 ? slope[k] : -INFINITE;
      if (rising > up) up = rising, i = thread * EACH + k;
      down = fmaxf(down, may_fall[k] > 0 ? -slope[k] : -INFINITE);
    }
    unsigned key = key_of(up, i), of_warp = largest_of_warp(key), down_of_warp = largest_of_warp(ordered(down));
    if (key == of_warp) best_up[warp] = of_warp, up_of[warp] = up, best_down[warp] = down_of_warp;
    __syncthreads();
    i = slot_of(largest_of_warp(best_up[reader]));
    down = -unordered(largest_of_warp(best_down[reader]));
    up = up_of[i / ROWS_OF_WARP];
    if (!told)  // nobody reads these between the two barriers
      for (int k = 0; k < EACH; ++k) rise[thread * EACH + k] = may_rise[k], fall[thread * EACH + k] = may_fall[k];
    told = true;
    if (up == -INFINITE) i = -1;
    if (priced && b > up) up = b, i = -1;
    if (priced) down = fminf(down, b);
    float violation = up - down;
    if (enough < 0) enough = fmaxf(least, share * violation);
    if (!(violation > enough)) break;
    float with_i[EACH], with_j[EACH], of_i = i >= 0 ? diagonal[i] : 0.f, gain = -1.f, lead = 0.f, curve = 1.f;
    row_of(matrices, i, with_i);
    int j = thread * EACH;
    for (int k = 0; k < EACH; ++k) {
      float ahead = may_fall[k] > 0 ? fmaxf(up - slope[k], 0.f) : 0.f;
      float bend = fmaxf(of_i + own[k] - 2.f * with_i[k], 1e-12f), gained = __fdividef(ahead * ahead, bend);
      if (gained > gain) gain = gained, lead = ahead, curve = bend, j = thread * EACH + k;
    }
    key = key_of(gain, j), of_warp = largest_of_warp(key);
    if (key == of_warp) best_gain[warp] = of_warp, lead_of[warp] = lead, curve_of[warp] = curve;
    __syncthreads();
    j = slot_of(largest_of_warp(best_gain[reader]));
    lead = lead_of[j / ROWS_OF_WARP];
    float step = __fdividef(lead, curve_of[j / ROWS_OF_WARP]);
    if (priced && i >= 0) {
      float alone = __fdividef(up - b, fmaxf(of_i, 1e-12f));
      if ((up - b) * alone > lead * step) j = -1, step = alone;
    }
    row_of(matrices, j, with_j);
    if (i >= 0) step = fminf(step, rise[i]);
    if (j >= 0) step = fminf(step, fall[j]);
    for (int k = 0; k < EACH; ++k) slope[k] -= step * (with_i[k] - with_j[k]);
    if ((i >= 0 && thread == i / EACH) || (j >= 0 && thread == j / EACH)) {
      told = false;
      for (int k = 0; k < EACH; ++k) {  // exactly 0 is left where all of a way is used
        int slot = thread * EACH + k;
        if (slot == i) may_rise[k] -= step, may_fall[k] += step, moved[k] += step;
        if (slot == j) may_fall[k] -= step, may_rise[k] += step, moved[k] -= step;
      }
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
