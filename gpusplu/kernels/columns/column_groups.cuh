// Groups of neighbouring columns taken by persistent blocks in the order of the plan (core/plan/columns/groups.hpp),
// and the columns of a group by the block's warps.
#pragma once
#include "columns/columns.cuh"

struct ColumnTickets {
  const int2* groups;  // first column, and the one after the last
  int first, count;    // tickets of this launch
  int last_launch;     // the epoch ends with it
  unsigned* control;   // tickets taken, blocks that are done, epoch
};

DEVICE void begin_tickets(const ColumnTickets& tickets, ColumnControl& control) {
  if (threadIdx.x == 0) control.epoch = load_acquire(tickets.control + 2) + 1;
}
// The next ticket of this launch, for the whole block; false if there is none left.
DEVICE bool next_ticket(const ColumnTickets& tickets, ColumnControl& control) {
  __syncthreads();
  if (threadIdx.x == 0) {
    control.ticket = tickets.first + (int)atomicAdd(tickets.control, 1u);
    control.column = 0;
  }
  __syncthreads();
  return control.ticket < tickets.first + tickets.count;
}
// Columns in ascending order, one a warp.
DEVICE int next_column(ColumnControl& control) { return warp_ticket(&control.column); }
// The last block resets the counters for the next launch.
DEVICE void end_tickets(const ColumnTickets& tickets, const ColumnControl& control) {
  if (threadIdx.x == 0 && add_acquire_release(tickets.control + 1, 1u) == gridDim.x - 1) {
    tickets.control[0] = tickets.control[1] = 0;
    if (tickets.last_launch) store_release(tickets.control + 2, control.epoch);
  }
}
