// In which order and by which launches the glu engine works off a column plan: right-looking, level by level.
//
// Task: the update of column k by column j, for an entry U(j, k) whose L(:, j) has entries. Tasks come by level of j.
//
// Modes (Lee, Achar and Nakhla, IEEE TVLSI 26 (2018)), for runs of neighbouring levels:
//   cluster   a launch for every level, a block for every piece of it. For wide levels.
//   batch     one launch for the run. Blocks take pieces in order, and a piece waits until the level before is done.
//   pipeline  one launch for the run. Blocks take tasks in order, one a warp, those first that update the columns
//   needed next; a task
//             waits until column j has all its updates and column k those of earlier tasks, so that nothing is added
//             atomically and a level begins before the one before it ends.
//   chain     one launch for the run, of one block. It goes from column to column without leaving its multiprocessor:
//             what it writes it reads from its own first-level cache. Where an update reads and writes is laid out
//             flat.
// The paper gives batch mode levels of two columns, pipeline mode levels of one. Here the cheapest sequence of modes by
// the model below is taken, which comes to the same where levels have little work.
//
// Pieces: neighbouring tasks of a level that a block of kGluThreads does at a time, 2^lanes_log2 threads a task, by the
// length of L(:, j). That is the resource-aware levelization of GLU (He, Tan, Wang and Shi, TVLSI 24 (2016)): a level
// is cut by what a multiprocessor holds. Deterministic.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/columns.hpp"

namespace gs::gpu {

constexpr int kGluThreads = 256;
enum class GluMode { cluster, batch, pipeline, chain };

// struct GluTask of kernels/glu.cuh
struct GluTask {
  std::int64_t upper;   // place of U(j, k)
  std::int64_t pivot;   // place of (j, j); L(:, j) follows
  std::int64_t map;     // with maps: where those of this update begin; else where column k ends
  std::int32_t count;   // entries of L(:, j)
  std::int32_t column;  // k
  std::int32_t source;  // j
  std::int32_t before;  // pipeline: updates of column k by earlier tasks of pipelines
  std::int32_t needed;  // pipeline: updates of column j by tasks of pipelines
  std::int32_t offset;  // of U(j, k) from the begin of column k
};
static_assert(sizeof(GluTask) == 48);

// struct GluPiece of kernels/glu.cuh
struct GluPiece {
  std::int32_t begin, end;  // tasks
  std::int32_t lanes_log2;
  std::int32_t level;                    // counter that counts this piece
  std::int32_t wait_level, wait_pieces;  // until that counter is there; wait_level -1: nothing to wait for
  std::int32_t padding[2];
};
static_assert(sizeof(GluPiece) == 32);

// struct GluUpdate of kernels/glu.cuh: one multiply-add of a chain
struct GluUpdate {
  std::int32_t target, lower, upper;  // places of (i, k), L(i, j) and U(j, k)
  std::int32_t padding;
};
static_assert(sizeof(GluUpdate) == 16);

// struct GluStep of kernels/glu.cuh: a column of a chain
struct GluStep {
  std::int32_t pivot;       // its place
  std::int32_t begin, end;  // updates
  std::int32_t padding;
};

// A run of levels [level_begin, level_end) in one mode.
struct GluRun {
  std::int32_t mode, level_begin, level_end;
  std::int32_t begin, end;  // pieces; tasks of a pipeline; steps of a chain
  std::int32_t widest;      // most of them in a level
};

struct GluSchedule {
  RawVector<GluTask> tasks;
  std::vector<GluPiece> pieces;
  std::vector<std::int32_t> level_piece;  // n_levels + 1: first piece of a level
  std::vector<GluRun> runs;
  RawVector<GluUpdate> updates;
  std::vector<GluStep> steps;
  double predicted_seconds = 0;  // of a refactorization [s]
};

// `forced`: a GluMode for all levels, or -1: the model chooses.
GluSchedule make_glu_schedule(const ColumnPlan& plan, int forced);

}  // namespace gs::gpu
