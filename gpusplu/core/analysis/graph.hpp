// Graphs of symmetrized patterns: the input of orderings and of the symbolic analysis of fronts.
//
// A graph is the pattern of C + C^T without its diagonal, both directions of every edge stored, neighbours ascending.
// Cost: O(n + nnz) time and memory, on the threads of the pool where the pattern is large. A pattern that is
// structurally symmetric already is recognized in half a pass and only copied.
#pragma once
#include "base/types.hpp"

namespace gs {

// Whether a canonical pattern equals its transpose.
bool is_structurally_symmetric(PatternView A);

// The graph of C + C^T with C = A[row_of_col]: row_of_col[j] is the row of A matched to column j (null: identity).
// A is canonical.
Pattern symmetrize(PatternView A, const idx* row_of_col = nullptr);
// The graph for C = A if it is known whether A is structurally symmetric.
Pattern symmetrize_known(PatternView A, bool symmetric);

// The graph of the diagonal blocks of B = A[row_perm][:, col_perm], n rows and columns of A, with blocks chosen by the
// caller: block[k] is that of row and column k of B. inverse_row_perm[row of A] = row of B, negative if none.
Pattern symmetrize_blocks(PatternView A, idx n, const idx* inverse_row_perm, const idx* col_perm, const idx* block);

// The exponent by which balls in a graph grow with their radius: about 2 on surfaces and 3 in space. The median around
// nine vertices; a ball counts 0 that is all of its component, or that has a thousand vertices within three edges.
// Cost: visits of the neighbours of 14,000 vertices at most.
double dimension(PatternView graph);

// inverse[perm[k]] = k
std::vector<idx> inverse_permutation(const idx* perm, idx n);

// 1 for an even permutation, -1 for an odd one.
int parity(const std::vector<idx>& perm);

// The part of each index below n; part k is begin[k] .. begin[k + 1] - 1.
std::vector<idx> part_of_each(const std::vector<idx>& begin, idx n);

// out[k] = values[order[k]]
std::vector<idx> gather(const std::vector<idx>& values, const std::vector<idx>& order);

}  // namespace gs
