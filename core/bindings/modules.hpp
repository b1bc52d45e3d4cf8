// SPDX-License-Identifier: BSD-3-Clause
// The parts of the module, each bound in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace maxmargin {

void bind_data(nanobind::module_& m);
void bind_codes(nanobind::module_& m);
void bind_passes(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_first_order(nanobind::module_& m);
void bind_second_order(nanobind::module_& m);
void bind_left_out(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_features(nanobind::module_& m);
void bind_crammer_singer(nanobind::module_& m);
void bind_ranking(nanobind::module_& m);

}  // namespace maxmargin
