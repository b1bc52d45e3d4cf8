// SPDX-License-Identifier: BSD-3-Clause
// The module: the only folder that sees Python is this one.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/modules.hpp"

namespace maxmargin {
namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets{"baseline"};
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq")) {
    sets.push_back("avx512");
  }
#endif
  return sets;
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(MAXMARGIN_MODULE, m) {
  nanobind::set_leak_warnings(false);  // core.py's constants live until the very end, on purpose
  m.def("instruction_sets", &maxmargin::instruction_sets);
  maxmargin::bind_data(m);
  maxmargin::bind_codes(m);
  maxmargin::bind_passes(m);
  maxmargin::bind_text(m);
  maxmargin::bind_first_order(m);
  maxmargin::bind_second_order(m);
  maxmargin::bind_left_out(m);
  maxmargin::bind_kernels(m);
  maxmargin::bind_features(m);
  maxmargin::bind_crammer_singer(m);
  maxmargin::bind_ranking(m);
}
