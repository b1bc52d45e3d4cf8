// SPDX-License-Identifier: BSD-3-Clause
// The kernel dual by conjugate gradients: where so many multipliers are free that no factor takes them.
//
// A face are the multipliers inside their walls, and those at a wall that gain by leaving it. With its
// members F, and walls left aside, it has the system of free_multipliers.hpp:
//
//   K_FF u + nu 1 = -f_F,      sum u = 0.
//
// Each step of conjugate gradients costs one product with the kernel matrix, and where that is well
// conditioned some dozen products do what steps on pairs of rows do by visiting each row dozens of times.
// After some of them the point is brought back: to the nearest one inside the walls with the same sum, as
// far towards it as that gains, for one product more. Then a new face is looked for. The dual value rises.
#pragma once

#include <vector>

#include "kernel/any_kernel_matrix.hpp"

namespace maxmargin {

// Multipliers with one total, and without the kink of twins.
class ConjugateGradients {
 public:
  explicit ConjugateGradients(AnyKernelMatrix& matrix);
  ~ConjugateGradients() { matrix_.forget_half(); }
  ConjugateGradients(const ConjugateGradients&) = delete;
  ConjugateGradients& operator=(const ConjugateGradients&) = delete;

  // Up to so many steps on one face, and the way back into the box; the number of products with the matrix.
  // What is cut short leaves everything as it was, and is none.
  Integer run(KernelDual& dual, Integer steps, const Budget& budget, Watch& watch);

 private:
  bool find_face(const KernelDual& dual);
  // Minus the gradient on the face at beta + u, counted from its middle; returns its squared length.
  double take_residuals(const KernelDual& dual);
  bool leaves_box(const KernelDual& dual) const;
  // From beta + u to the nearest point in the box with the same sum, and from beta towards that as far as
  // it gains; false where it was cut short.
  bool return_to_box(KernelDual& dual, const Budget& budget, Watch& watch);
  void move(KernelDual& dual, double share);

  AnyKernelMatrix& matrix_;
  std::vector<Integer> rows_;                                    // of the face
  std::vector<double> direction_, image_, moved_, moved_image_;  // p, K p, u and K u, of all rows
  std::vector<double> residuals_, before_, first_;  // of the face: now, a step ago, and those at beta
};

}  // namespace maxmargin
