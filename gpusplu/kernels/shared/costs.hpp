// Constants of predicted seconds, which Python passes to the core. Their values, units and measurements are only in the
// table gpusplu/cost/table.py: a struct of numbers is an entry of it, named by its path (Costs::cpu.column.factor is
// "cpu.column.factor").
#pragma once

namespace gs {

constexpr int SINGLE_THREAD_FLOPS = 3000000;  // column LU refactors with one thread below

// The CPU engine. Phases are sums of a constant times a feature.
struct LinearCosts {
  double call, rows, entries, fill, flops, alone;  // alone: flops again, where there are fewer than ALONE_FLOPS
};
struct MethodCosts {
  LinearCosts factor, refactor, solve;
};
struct SupernodeCosts {
  double fronts, columns, flops, bytes;  // of fronts while supernodes merge; bytes: assembled
};
struct TaskCosts {
  double fronts, entries, multiply_adds;  // of a refactorization by one thread, while its work is distributed
  double visits, bytes;                   // of a solve: of every front, and of the factor read
};
struct ThreadCosts {
  double leaf, team;              // the smallest task of leaves worth its bookkeeping, front worth sharing its loops
  double factor, inverse, solve;  // work that must be left for each further thread
};
struct DissectionCosts {
  double rows, entries;  // of the graph
};
struct CpuCosts {
  MethodCosts column, front, ldlt;  // ldlt: by fronts
  SupernodeCosts supernodes;
  TaskCosts tasks;
  ThreadCosts threads;
  DissectionCosts dissection;
};

// Plans of fronts on a device, by phase (shared/fronts.hpp).
struct MergeCosts {
  double front, few, pivot, flop, scalar;  // few: of a front where there are few of them; scalar: assembled or written
};
struct MergePhases {
  MergeCosts warp, small, block, large;
};
struct FrontCosts {
  double front, batch;           // descriptor, entries of A, publishing; item_batch() items of every group
  double pivot, pivot_cholesky;  // of the critical path
  double scalar, flop;           // of a front written, and that pivots do not hide
  double between, launch;        // from one front to the next on a multiprocessor; of phases that do not overlap
};
struct FrontPhases {
  FrontCosts warp, small, block, large;
};
struct PathCosts {
  double front, pivot, full;  // one direction of a solve; full: multiprocessor time per front on a full device
};
struct PathPhases {
  PathCosts warp, small, block, large;
};
struct DeviceCosts {
  double flop, slow_flop;  // of a multiprocessor, and of one with little double precision
  double byte, solve;      // of the memory; of a call, one direction
};
struct CopyCosts {
  double byte;  // from or to page-locked memory of the host
};
struct TileCosts {
  double front, task, column, pivot, pivot_cholesky;  // of large fronts; column, pivot: of the chain, a tile column
  double flop, flop_d, flop_D;                        // of the device, for these scalars
};
struct TicketCosts {
  double warp, front, panel, byte;  // of a front on the path to the root in a solve
};
struct SupernodalCosts {
  MergePhases merge;
  FrontPhases front;
  PathPhases way;
  DeviceCosts device;
  CopyCosts copy;
  TileCosts tiles;
  TicketCosts tickets;
};

// Plans of columns on a device.
struct ScheduleCosts {
  double launch, hop, cluster_piece, batch_piece;  // of a level, of its chunks
  double pipeline, column, update;
};
struct GluCosts {
  ScheduleCosts schedule;
};
struct LongColumnCosts {
  double update, level, block;  // by a warp; a level of columns; begin and end of the work of a block
  double depth, round, terms;   // of a block; terms: four of an entry
};
struct ColumnsCosts {
  LongColumnCosts longest;
};

// Systems in lockstep: fronts of all lanes together.
struct LockstepCosts {
  SupernodeCosts merging;
};

struct Costs {
  CpuCosts cpu;
  LockstepCosts lockstep;
  SupernodalCosts supernodal;
  GluCosts glu;
  ColumnsCosts columns;
};

}  // namespace gs
