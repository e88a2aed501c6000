"""What has to hold of gpusplu.torch on every device: bodies of tests."""

import torch
from torch.autograd import gradcheck, gradgradcheck

import gpusplu as gs
import gpusplu.torch as gst
from support.tensors import OPERATIONS, dense, numbers, on_pattern, sparse

#: What torch says about itself.
WARNINGS = (
    "Sparse (CSR|CSC) tensor support is in beta",
    "Sparse invariant checks are implicitly disabled",
    "`torch.jit.script` is deprecated",
)


def close(got, expected, tolerance=1e-12):
    assert got.shape == expected.shape
    assert got.device == expected.device
    assert got.dtype == expected.dtype
    got, expected = got.detach(), expected.detach()
    assert (got - expected).abs().max() <= tolerance * max(1.0, float(expected.abs().max()))


def solutions(device, dtype, layout, shape, trans):
    A, b = sparse(dtype=dtype, layout=layout, device=device), numbers(*shape, dtype=dtype, device=device)
    x = gst.spsolve(A, b, trans=trans)
    close(x, torch.linalg.solve(OPERATIONS[trans](A.to_dense()), b))


def derivatives(device, dtype, shape, trans, nbatch=None):
    pattern, values = on_pattern(dtype=dtype, device=device, nbatch=nbatch)
    b = numbers(*shape, dtype=dtype, device=device).requires_grad_()

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values, trans=trans)

    assert gradcheck(solve, (values, b), check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(solve, (values, b), fast_mode=True)


def gradient_is_sparse(device, layout):
    A = sparse(layout=layout, device=device).requires_grad_()
    b = numbers(6, device=device).requires_grad_()
    gradient, of_b = torch.autograd.grad(gst.spsolve(A, b).square().sum(), (A, b))
    assert gradient.layout == A.layout
    assert gradient.shape == A.shape
    D = A.detach().to_dense().requires_grad_()
    c = b.detach().clone().requires_grad_()
    torch.linalg.solve(D, c).square().sum().backward()
    close(of_b, c.grad)
    close(gst.pattern.entries(gradient), D.grad[gst.Pattern(A).coordinates()])
    if layout != "csc":  # torch accumulates no gradients in that layout
        gst.spsolve(A, b).square().sum().backward()
        close(A.grad.to_dense(), gradient.to_dense())


def second_derivative_of_a_tensor(device, layout):
    A = sparse(layout=layout, device=device).requires_grad_()
    b = numbers(6, device=device)
    (first,) = torch.autograd.grad(gst.spsolve(A, b).square().sum(), A, create_graph=True)
    (second,) = torch.autograd.grad(gst.pattern.entries(first).square().sum(), A)
    pattern = gst.Pattern(A)
    values = gst.pattern.entries(A).detach().requires_grad_()
    loss = torch.linalg.solve(dense(pattern, values), b).square().sum()
    (first,) = torch.autograd.grad(loss, values, create_graph=True)
    (expected,) = torch.autograd.grad(first.square().sum(), values)
    close(gst.pattern.entries(second), expected)


def full_derivatives(device, dtype):
    pattern, values = on_pattern(dtype=dtype, device=device)
    b = numbers(6, dtype=dtype, device=device).requires_grad_()

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values)

    assert gradcheck(solve, (values, b), check_forward_ad=True)
    assert gradgradcheck(solve, (values, b))


def one_factorization(device):
    pattern, values = on_pattern(device=device)
    b = numbers(6, device=device).requires_grad_()
    before = gs.factorization_count()
    loss = gst.spsolve(pattern, b, values=values).square().sum()
    assert gs.factorization_count() == before + 1
    first = torch.autograd.grad(loss, (values, b), create_graph=True)
    torch.autograd.grad(sum(one.square().sum() for one in first), (values, b))
    assert gs.factorization_count() == before + 1


def one_batch_under_vmap(device, in_dims):
    pattern, values = on_pattern(device=device, nbatch=3)
    values, b = values.detach(), numbers(3, 6, device=device)
    values, b = (one if dim == 0 else one[0] for one, dim in zip((values, b), in_dims, strict=True))
    before = gs.factorization_count()
    x, gradients = torch.func.vmap(lambda v, c: both(pattern, v, c), in_dims)(values, b)
    assert gs.factorization_count() == before + (3 if in_dims[0] == 0 else 1)
    for system in range(3):
        v, c = (one[system] if dim == 0 else one for one, dim in zip((values, b), in_dims, strict=True))
        alone = both(pattern, v, c)
        close(x[system], alone[0])
        close(gradients[0][system], alone[1][0])
        close(gradients[1][system], alone[1][1])


def both(pattern, values, b):
    """A solution, and the gradient of its square, by torch.func."""

    def loss(values, b):
        x = gst.spsolve(pattern, b, values=values)
        return x.square().sum(), x

    gradients, x = torch.func.grad(loss, (0, 1), has_aux=True)(values, b)
    return x, gradients


def every_second_derivative(device):
    pattern, values = on_pattern(device=device)
    values, b, weights = values.detach(), numbers(6, device=device), numbers(6, device=device, seed=1)

    def ours(values, b):
        return (gst.spsolve(pattern, b, values=values) * weights).sum()

    def theirs(values, b):
        return (torch.linalg.inv(dense(pattern, values)) @ b * weights).sum()

    ways = (torch.func.jacrev, torch.func.jacfwd)
    for arguments in ((0, 0), (0, 1), (1, 0)):
        expected = ways[0](ways[0](theirs, arguments[0]), arguments[1])(values, b)
        for outer in ways:
            for inner in ways:
                close(outer(inner(ours, arguments[0]), arguments[1])(values, b), expected)


def determinants(device, dtype, nbatch=None):
    pattern, values = on_pattern(5, dtype, device, nbatch)

    def ours(values):
        return gst.slogdet(pattern, values=values)

    def theirs(values):
        return torch.linalg.slogdet(dense(pattern, values))

    for got, expected in zip(ours(values), theirs(values), strict=True):
        close(got, expected)
    weight = numbers(*values.shape[:-1], dtype=dtype, device=device)

    def loss(slogdet):
        return lambda values: (slogdet(values)[1] + (slogdet(values)[0] * weight).real).sum()

    for got, expected in zip(
        *(torch.autograd.functional.vhp(loss(one), values, values.detach()) for one in (ours, theirs)), strict=True
    ):
        close(got, expected)
    assert gradcheck(loss(ours), values, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(loss(ours), values, check_fwd_over_rev=True, fast_mode=True)
    (gradient,) = torch.autograd.grad(loss(ours)(values), values)
    close(torch.func.grad(loss(ours))(values.detach()), gradient)


def plain_functions(device, dtype, layout):
    """The functions of gpusplu that know nothing of derivatives."""
    A, b = sparse(dtype=dtype, layout=layout, device=device), numbers(6, dtype=dtype, device=device)
    D, values = A.to_dense(), gst.pattern.entries(A)
    x = torch.linalg.solve(D, b)
    close(gs.spsolve(A, b), x)
    close(gs.spsolve(A, b[:, None]), x)  # as SciPy has it
    several = torch.stack([b, 2 * b], 1)
    close(gs.spsolve(A, several), torch.stack([x, 2 * x], 1))
    if layout != "coo":
        of_sparse = gs.spsolve(A, several.to_sparse_csc())
        assert of_sparse.layout == A.layout
        close(of_sparse.to_dense(), torch.stack([x, 2 * x], 1))
    close(gs.factorized(A)(b), x)
    lu = gs.splu(A)
    for trans, operation in OPERATIONS.items():
        close(lu.solve(b, trans), torch.linalg.solve(operation(D), b))
        close(lu.solve(several, trans), torch.linalg.solve(operation(D), several))
    lu.refactor(2 * values)
    close(lu.solve(b), x / 2)
    lu.refactor(A)
    close(lu.solve(b), x)
    close(lu.refactor_solve(4 * values, b), x / 4)
    symbolic = gs.analyze(A)
    close(symbolic.factor(2 * values).solve(b), x / 2)
    batch = gs.splu_batch(A, torch.stack([values, 2 * values]))
    close(batch.solve(b), torch.stack([x, x / 2]))
    assert "engine" in gs.explain(A)
