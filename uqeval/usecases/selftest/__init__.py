"""Self-test: known answers on this machine, with the installed versions.

Kernels against plain NumPy, the papers' worked examples, videos with a known answer, codecs, and
golden reports. All data are made from seeds; nothing is read but this package.
"""
