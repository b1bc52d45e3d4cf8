// SPDX-License-Identifier: BSD-3-Clause
// Rosenblatt's perceptron: one pass over rows in a given order.
#pragma once

#include <span>

#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

struct PerceptronPass {
  Integer visited = 0;   // rows, fewer than asked for where the time is up
  Integer mistakes = 0;  // among them
  double beta = 0;       // coefficient of the bias feature, so that b = feature * beta
};

// w += y_i x_i for every row that is on the wrong side or on the plane; `counts` gets 1 more for it. Rows
// are a view, taken by value: behind a reference, where they lie would be read again at every visit.
template <class Rows>
PerceptronPass perceptron(Rows rows, const double* labels, std::span<const Integer> order, double* w,
                          double* counts, double bias_feature, double beta, Watch& watch) {
  PerceptronPass pass{.beta = beta};
  for (const Integer i : order) {  // 1
    const auto row = rows[i];
    Integer work = row.size();
    ++pass.visited;
    if (labels[i] * (row.dot(w) + bias_feature * pass.beta) <= 0) {  // 2
      row.add_to(w, labels[i]);                                      // 3
      pass.beta += labels[i] * bias_feature;                         // 4
      counts[i] += 1;
      ++pass.mistakes;
      work *= 2;
    }
    if (watch.spend(work)) break;
  }
  return pass;
}

}  // namespace maxmargin
