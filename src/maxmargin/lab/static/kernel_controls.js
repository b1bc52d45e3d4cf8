// SPDX-License-Identifier: BSD-3-Clause
// The controls that choose a kernel; chosen_kernel.py reads what they say.

const KERNELS = {
  linear: "linear", polynomial: "polynomial", gaussian: "Gaussian", laplacian: "Laplacian", chi_squared: "chi-squared", sigmoid: "sigmoid",
};

/** Those of the first kernel, or of the second ("2"); used(values): whether there is one. */
export function kernelControls(which, words, used) {
  const of = (...names) => (values) => used(values) && names.includes(values[`kernel${which}`]);
  return [
    { kind: "choice", name: `kernel${which}`, label: words, options: KERNELS, when: used },
    { kind: "range", name: `gamma${which}`, label: "gamma", from: -2, to: 2, step: 0.05, log: true, when: of("polynomial", "gaussian", "laplacian", "chi_squared", "sigmoid") },
    { kind: "range", name: `degree${which}`, label: "degree", from: 1, to: 8, step: 1, when: of("polynomial") },
    { kind: "range", name: `coef0${which}`, label: "coef0", from: -3, to: 3, step: 0.1, when: of("polynomial", "sigmoid") },
  ];
}
