// SPDX-License-Identifier: BSD-3-Clause
#include "features/monomials.hpp"

namespace maxmargin {

MAXMARGIN_EXPANSIONS(, float)
MAXMARGIN_EXPANSIONS(, double)

}  // namespace maxmargin
