# SPDX-License-Identifier: Apache-2.0
"""What `make bench` is made of; bench/README.md says how to read it."""
