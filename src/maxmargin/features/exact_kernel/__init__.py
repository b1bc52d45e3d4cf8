# SPDX-License-Identifier: BSD-3-Clause
"""What a model on approximate features proves about the exact kernel machine."""
