// SPDX-License-Identifier: BSD-3-Clause
// What kernels find out about rows once, for all that share them.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "kernel/kernel_rows.hpp"

namespace maxmargin {

struct KernelMemo {
  std::mutex mutex;
  std::array<std::optional<Encoding>, 2> encodings;  // for kernels of other common sums, and of products
  std::optional<ByteRows> bytes;
};

}  // namespace maxmargin
