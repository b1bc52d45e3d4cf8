// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/any_kernel_matrix.hpp"

#include "kernel/kernel_matrix.hpp"

namespace maxmargin {

std::unique_ptr<AnyKernelMatrix> kernel_matrix(const KernelRows& rows, const KernelSum& kernel,
                                               const Encoding& encoding, std::span<const Integer> order,
                                               std::span<const Integer> begins, MatrixOptions options) {
  if (options.single)
    return std::make_unique<KernelMatrix<float>>(rows, kernel, encoding, order, begins, std::move(options));
  return std::make_unique<KernelMatrix<double>>(rows, kernel, encoding, order, begins, std::move(options));
}

}  // namespace maxmargin
