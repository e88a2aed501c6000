"""Sparse direct solves that JAX differentiates, batches and compiles.

>>> import gpusplu.jax
>>> from jax.experimental.sparse import BCSR
>>> A, b = BCSR.from_scipy_sparse(gs.gallery.poisson(5, 5)), np.ones(25)
>>> x = gpusplu.jax.spsolve(A, b)             # A: BCSR or BCOO
>>> solve = gpusplu.jax.factorized(A)
>>> sign, logabsdet = gpusplu.jax.slogdet(A)

All of it works under jit, grad, jvp, vmap, checkpoint, scan and while_loop. Derivatives are those with respect to A's
values, on A's pattern, and to b, of any order; the adjoint of a solve uses the factor of that solve. What vmap adds is
one native call: more right-hand sides of one factor where A is the same for all, and one batch of systems where it is
not.

**The pattern** is static where A's index arrays are concrete: closed over by a jitted function, or outside of jit. It
is then analysed once, and costs nothing per call. Index arrays that are traced, those of an A that is an argument of a
jitted function, are read by every call and found among the patterns seen before.

**Factors** are cached by their values (see `gpusplu.jax.store`) within the limit of bytes that
:func:`gpusplu.cache_limit` sets; :func:`gpusplu.cache_clear` drops them. JAX carries A's values from a solve to its
adjoint, not a handle. So nothing leaks if JAX drops, repeats or batches a computation, and an adjoint factors again if
its factor was dropped.

**Singular matrices** have NaN for their solutions, as jax.numpy.linalg.solve has it; so have those with NaN or Inf.

**On a GPU** compiled programs factor and solve there, in XLA's stream: values, b and x stay on the device but for the
first values of a pattern, by which pivots are chosen. Determinants, and traced index arrays, are taken to the host.
Without CuPy, or with the environment variable GPUSPLU_JAX_ON_DEVICE=0 set before the import, all of it is.
"""

from .solvers import Factorized, SlogDet, factorized, slogdet, spsolve

__all__ = ["Factorized", "SlogDet", "factorized", "slogdet", "spsolve"]
