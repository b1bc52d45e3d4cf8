// SPDX-License-Identifier: BSD-3-Clause
// The rows of the next working sets: five functions, one after the other, for all parts at once.
//
// A look is a block of threads at up to LOOK rows of one part, so that large parts are looked at by many:
// looks has the part and the first row of each, and firsts where the looks of each part begin. Nothing
// depends on which block comes first: sums are added up in the order of the looks, and what several blocks
// count at a time are whole numbers.

#define ROWS_OF_THREAD 4
#define LOOK (SET * ROWS_OF_THREAD)
#define NEW_OF_A_SIDE 256  // the worst violators that come to a set, at most, of those that rise and of those that fall
#define BINS 1024          // of a histogram of violations, as many as there are threads
#define TALLIES 3          // whole numbers that a look counts
#define SUMS 3             // and what it adds up

// The largest key of all threads; ``best`` is shared.
__device__ __forceinline__ unsigned largest(unsigned key, unsigned* best) {
  key = largest_of_warp(key);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) best[threadIdx.x >> 5] = key;
  __syncthreads();
  return largest_of_warp(best[threadIdx.x & 31]);
}

__device__ __forceinline__ double sum_of_warp(double value) {
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(EVERY_LANE, value, step);
  return value;
}

__device__ double sum_of_all(double value, double* shared) {
  value = sum_of_warp(value);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = value;
  __syncthreads();
  return sum_of_warp(shared[threadIdx.x & 31]);
}

// The sum of the values of all threads before this one, and of all; ``counts`` is shared.
__device__ int sum_before(int value, int* counts, int& all) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, upto = value;
  for (int step = 1; step < 32; step <<= 1) {
    int other = __shfl_up_sync(EVERY_LANE, upto, step);
    if (lane >= step) upto += other;
  }
  __syncthreads();
  if (lane == 31) counts[warp] = upto;
  __syncthreads();
  int before = upto - value;
  all = 0;
  for (int other = 0; other < 32; ++other) {
    if (other < warp) before += counts[other];
    all += counts[other];
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

// The extremes of a part, its intercept b, and how far the extremes are from it.
struct Middle {
  float up, down, b, width[2];
  double exact_b;
  __device__ Middle(const float* extremes, Index first, Index end, int priced, const double* price) {
    unsigned most = ordered(-INFINITE), least = ordered(-INFINITE);
    for (Index look = first + (threadIdx.x & 31); look < end; look += 32) {
      most = max(most, ordered(extremes[2 * look]));
      least = max(least, ordered(extremes[2 * look + 1]));
    }
    up = unordered(largest_of_warp(most)), down = -unordered(largest_of_warp(least));
    double middle = up == -INFINITE ? down : down == INFINITE ? up : 0.5 * ((double)up + down);
    exact_b = priced ? *price : middle;
    b = (float)exact_b;
    width[0] = fmaxf(up - b, 1e-30f), width[1] = fmaxf(b - down, 1e-30f);
  }
};

// What a row can do, and by how much it violates the conditions with an intercept of b.
struct Row {
  float slope;
  bool rises, falls;  // whether beta may
  __device__ Row(double alpha, double f, float y, double cost)
      : slope((float)((double)y - f)),
        rises(y > 0 ? alpha < cost : alpha > 0),
        falls(y > 0 ? alpha > 0 : alpha < cost) {}
  // The bin of its violation on a side, 0: rises, 1: falls; -1 where it has none. It has one on one side at
  // most. The worst violators are neighbours of each other, and what one round does to them the next one
  // undoes: so each gets noise, up to half of the largest violation.
  __device__ int bin(int side, const Middle& middle, float noise) const {
    float violation = side ? middle.b - slope : slope - middle.b;
    if (!(side ? falls : rises) || !(violation > 0)) return -1;
    return min(BINS - 1, (int)((violation / middle.width[side] + 0.5f * noise) * (BINS / 1.5f)));
  }
};

extern "C" {

// The largest slope of a row that rises, and the largest of one that falls with its sign changed, of each look.
__global__ void __launch_bounds__(SET)
    find_extremes(const Index* begins, const Index* looks, const double* alpha, const double* f, const float* y,
                  const double* costs, float* extremes, int* histogram) {
  __shared__ unsigned best[2][32];
  Index part = looks[2 * (Index)blockIdx.x], from = looks[2 * (Index)blockIdx.x + 1];
  Index end = min(begins[part] + from + LOOK, begins[part + 1]);
  if (from == 0)
    for (int k = threadIdx.x; k < 2 * BINS; k += SET) histogram[part * 2 * BINS + k] = 0;
  float up = -INFINITE, down = -INFINITE;
  for (Index i = begins[part] + from + threadIdx.x; i < end; i += SET) {
    Row row(alpha[i], f[i], y[i], costs[i]);
    if (row.rises) up = fmaxf(up, row.slope);
    if (row.falls) down = fmaxf(down, -row.slope);
  }
  unsigned most = largest(ordered(up), best[0]), least = largest(ordered(down), best[1]);
  if (threadIdx.x == 0) {
    extremes[2 * (Index)blockIdx.x] = unordered(most);
    extremes[2 * (Index)blockIdx.x + 1] = unordered(least);
  }
}

// How large the violations are, in bins; and of each look the gap at b, the dual value and the sum of beta.
__global__ void __launch_bounds__(SET)
    weigh_rows(const Index* begins, const Index* looks, const Index* firsts, const double* alpha, const double* f,
               const float* y, const double* costs, const float* extremes, unsigned round, int priced,
               const double* price, int* histogram, double* sums) {
  __shared__ double shared[32];
  __shared__ int bins[2][BINS];
  Index part = looks[2 * (Index)blockIdx.x], from = looks[2 * (Index)blockIdx.x + 1], begin = begins[part];
  Index end = min(from + LOOK, begins[part + 1] - begin);
  Middle middle(extremes, firsts[part], firsts[part + 1], priced, price);
  for (int side = 0; side < 2; ++side) bins[side][threadIdx.x] = 0;
  __syncthreads();
  double gap = 0, dual = 0, balance = 0;
  for (Index k = from + threadIdx.x; k < end; k += SET) {
    Index i = begin + k;
    double lacking = 1.0 - y[i] * (f[i] + middle.exact_b);
    gap += costs[i] * fmax(lacking, 0.0) - alpha[i] * lacking;
    dual += alpha[i] - 0.5 * alpha[i] * y[i] * f[i];
    balance += alpha[i] * y[i];
    Row row(alpha[i], f[i], y[i], costs[i]);
    for (int side = 0; side < 2; ++side) {
      int bin = row.bin(side, middle, noise((unsigned)k, round));
      if (bin >= 0) atomicAdd(&bins[side][bin], 1);
    }
  }
  gap = sum_of_all(gap, shared);
  dual = sum_of_all(dual, shared);
  balance = sum_of_all(balance, shared);
  if (threadIdx.x == 0) {
    double* out = sums + SUMS * (Index)blockIdx.x;
    out[0] = gap, out[1] = dual, out[2] = balance;
  }
  for (int side = 0; side < 2; ++side) {
    int many = bins[side][threadIdx.x];
    if (many) atomicAdd(&histogram[(part * 2 + side) * BINS + threadIdx.x], many);
  }
}

// The bin of each side above which all rows are taken, and how many of its own there is room for; and of each
// look the rows in these two bins, and those above.
__global__ void __launch_bounds__(SET)
    count_rows(const Index* begins, const Index* looks, const Index* firsts, const double* alpha, const double* f,
               const float* y, const double* costs, const float* extremes, unsigned round, int priced,
               const double* price, const int* histogram, int* cuts, int* tallies) {
  __shared__ int counts[32], lowest[2], room[2], tally[TALLIES];
  int thread = threadIdx.x;
  Index part = looks[2 * (Index)blockIdx.x], from = looks[2 * (Index)blockIdx.x + 1], begin = begins[part];
  Index end = min(from + LOOK, begins[part + 1] - begin);
  Middle middle(extremes, firsts[part], firsts[part + 1], priced, price);
  if (thread < 2) room[thread] = NEW_OF_A_SIDE;
  if (thread < TALLIES) tally[thread] = 0;
  for (int side = 0; side < 2; ++side) {
    int own = histogram[(part * 2 + side) * BINS + BINS - 1 - thread], all;
    int upto = sum_before(own, counts, all) + own;
    int whole = __syncthreads_count(upto <= NEW_OF_A_SIDE);
    if (thread == 0) lowest[side] = BINS - 1 - whole;
    if (thread == whole - 1) room[side] = NEW_OF_A_SIDE - upto;
  }
  __syncthreads();
  if (from == 0 && thread < 2) {
    cuts[part * 4 + thread] = lowest[thread];
    cuts[part * 4 + 2 + thread] = room[thread];
  }
  for (Index k = from + thread; k < end; k += SET) {
    Row row(alpha[begin + k], f[begin + k], y[begin + k], costs[begin + k]);
    for (int side = 0; side < 2; ++side) {
      int bin = row.bin(side, middle, noise((unsigned)k, round));
      if (bin >= 0 && bin >= lowest[side]) atomicAdd(&tally[bin == lowest[side] ? side : 2], 1);
    }
  }
  __syncthreads();
  if (thread < TALLIES) tallies[TALLIES * (Index)blockIdx.x + thread] = tally[thread];
}

// The rows that are new in the sets, in their order.
__global__ void __launch_bounds__(SET)
    place_rows(const Index* begins, const Index* looks, const Index* firsts, const double* alpha, const double* f,
               const float* y, const double* costs, const float* extremes, unsigned round, int priced,
               const double* price, const int* cuts, const int* tallies, int* fresh, unsigned char* marked) {
  __shared__ int counts[32];
  Index part = looks[2 * (Index)blockIdx.x], from = looks[2 * (Index)blockIdx.x + 1], begin = begins[part];
  Index end = min(from + LOOK, begins[part + 1] - begin);
  Middle middle(extremes, firsts[part], firsts[part + 1], priced, price);
  const int *lowest = cuts + part * 4, *room = lowest + 2, *own = tallies + TALLIES * (Index)blockIdx.x;
  if (own[0] + own[1] + own[2] == 0) return;
  int edges[2] = {0, 0}, place = 0;  // before this look: rows in the two bins, and rows that are taken
  for (Index look = firsts[part]; look < blockIdx.x; ++look) {
    const int* tally = tallies + TALLIES * look;
    for (int side = 0; side < 2; ++side) {
      place += min(max(room[side] - edges[side], 0), tally[side]);
      edges[side] += tally[side];
    }
    place += tally[2];
  }
  Index first = from + (Index)threadIdx.x * ROWS_OF_THREAD;
  int sides[ROWS_OF_THREAD], many = 0, all;  // -1: not taken, 2: taken, 0 and 1: on the edge of a side
  for (int k = 0; k < ROWS_OF_THREAD; ++k) {
    sides[k] = -1;
    Index i = begin + first + k;
    if (first + k >= end) continue;
    Row row(alpha[i], f[i], y[i], costs[i]);
    for (int side = 0; side < 2; ++side) {
      int bin = row.bin(side, middle, noise((unsigned)(first + k), round));
      if (bin >= 0 && bin >= lowest[side]) sides[k] = bin == lowest[side] ? side : 2;
    }
    many += sides[k] == 0 ? 1 : sides[k] == 1 ? 1 << 16 : 0;  // both in one number: a look has fewer rows
  }
  int before = sum_before(many, counts, all);
  edges[0] += before & 0xffff, edges[1] += before >> 16;
  int takes = 0;
  for (int k = 0; k < ROWS_OF_THREAD; ++k) {
    int side = sides[k];
    if ((side == 0 || side == 1) && edges[side]++ >= room[side]) sides[k] = -1;
    takes += sides[k] >= 0;
  }
  place += sum_before(takes, counts, all);
  for (int k = 0; k < ROWS_OF_THREAD; ++k)
    if (sides[k] >= 0) {
      fresh[part * 2 * NEW_OF_A_SIDE + place++] = (int)(first + k);
      marked[begin + first + k] = 1;
    }
}

// The sets: the new rows first, then those that were there, the latest first. And the facts of each part: the
// largest slope of a row that rises, the least of one that falls, the gap at b, the dual value, how many rows
// are new in the set, how many it has, b, and the sum of beta.
__global__ void __launch_bounds__(SET)
    refill_sets(const Index* begins, const Index* firsts, const float* extremes, int priced, const double* price,
                const int* histogram, const double* sums, const int* fresh, unsigned char* marked, int* sets,
                double* facts) {
  __shared__ int counts[32];
  __shared__ double total[SUMS];
  Index part = blockIdx.x;
  int thread = threadIdx.x, filled = 0, all;
  marked += begins[part], sets += part * SET, fresh += part * 2 * NEW_OF_A_SIDE;
  Middle middle(extremes, firsts[part], firsts[part + 1], priced, price);
  for (int side = 0; side < 2; ++side) {
    sum_before(histogram[(part * 2 + side) * BINS + thread], counts, all);
    filled += min(all, NEW_OF_A_SIDE);
  }
  int old = sets[thread];
  bool keep = old >= 0 && !marked[old];
  int place = filled + sum_before(keep, counts, all);
  if (keep && place < SET) sets[place] = old;
  if (thread < filled) sets[thread] = fresh[thread];
  if (thread >= filled + all) sets[thread] = -1;
  if (thread < 32 * SUMS) {
    double sum = 0;
    for (Index look = firsts[part] + thread % 32; look < firsts[part + 1]; look += 32)
      sum += sums[SUMS * look + thread / 32];
    sum = sum_of_warp(sum);
    if (thread % 32 == 0) total[thread / 32] = sum;
  }
  __syncthreads();
  if (thread < filled) marked[fresh[thread]] = 0;
  if (thread == 0) {
    double* out = facts + part * FACTS;
    out[0] = middle.up, out[1] = middle.down, out[2] = total[0], out[3] = total[1];
    out[4] = filled, out[5] = min(filled + all, SET), out[6] = middle.exact_b, out[7] = total[2];
  }
}

}  // extern "C"
