"""Sparse direct solves that JAX differentiates, batches and compiles.

>>> import gpusplu.jax
>>> from jax.experimental.sparse import BCSR
>>> A, b = BCSR.from_scipy_sparse(gs.gallery.poisson(5, 5)), np.ones(25)
>>> x = gpusplu.jax.spsolve(A, b)             # A: BCSR or BCOO
>>> solve = gpusplu.jax.factorized(A)
>>> sign, logabsdet = gpusplu.jax.slogdet(A)

All functions work under jit, grad, jvp, vmap, checkpoint, scan and while_loop. Derivatives with respect to A's values,
on A's pattern, and to b are of any order; the adjoint of a solve uses the factor of that solve. vmap makes one native
call: more right-hand sides of one factor if A is the same for all, else one batch of systems.

**The pattern** is static if A's index arrays are concrete: closed over by a jitted function, or outside of jit. It is
then analysed once, and costs nothing per call. Traced index arrays, those of an A that is an argument of a jitted
function, are read by every call and looked up in the pattern cache.

**Factors** are cached by their values (see `gpusplu.jax.store`) within the limit of bytes that
:func:`gpusplu.cache_limit` sets; :func:`gpusplu.cache_clear` drops them. JAX carries A's values from a solve to its
adjoint, not a handle. So nothing leaks if JAX drops, repeats or batches a computation, and an adjoint factors again if
its factor was dropped.

**Singular matrices** give NaN as solutions, as in jax.numpy.linalg.solve; so do matrices with NaN or Inf.

**On a GPU** compiled programs factor and solve there, in XLA's stream: values, b and x stay on the device except the
first values of a pattern, by which pivots are chosen. Determinants and traced index arrays are copied to the host.
Without CuPy, or with the environment variable GPUSPLU_JAX_ON_DEVICE=0 set before the import, everything is.
"""

from .solvers import Factorized, SlogDet, factorized, slogdet, spsolve

__all__ = ["Factorized", "SlogDet", "factorized", "slogdet", "spsolve"]
