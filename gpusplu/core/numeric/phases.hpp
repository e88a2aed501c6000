// How a team works off the phases of one front.
#pragma once
#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

constexpr idx rows_per_task = 96;

// Tasks are taken in turn; next_phase() waits until all are done. The word that rank 0 sets in a phase is what every
// member sees after it. Once the team is in its own way, rank 0 goes on alone and the others find no more tasks.
class Phases {
 public:
  explicit Phases(const Team& team) : team_(team), alone_(team.size == 1 || team.crowded()) {}
  ~Phases() { team_.sync(); }  // the counters are zero again before anyone enters the next front
  // Nothing is left to take, nor to do for rank 0, once the call was asked to stop: members come to the end soon.
  int take() {
    if (must_stop()) return no_task;
    if (!alone_) return team_.barrier->turn[phase_ & 1].fetch_add(1, std::memory_order_relaxed);
    return team_.rank == 0 ? own_turn_++ : no_task;
  }
  bool leads() const { return team_.rank == 0 && !must_stop(); }
  void set_word(int word) {
    own_word_ = word;
    if (!alone_) team_.barrier->word[phase_ & 1].store(word, std::memory_order_relaxed);
  }
  bool is_over() const { return alone_ && team_.rank > 0; }  // for this member
  int next_phase() {
    own_turn_ = 0;
    if (alone_) return own_word_;
    team_.sync();
    own_word_ = team_.barrier->word[phase_ & 1].load(std::memory_order_relaxed);
    if (team_.rank == 0) team_.barrier->turn[phase_ & 1].store(0, std::memory_order_relaxed);
    phase_++;
    alone_ = team_.crowded();
    return own_word_;
  }

 private:
  static constexpr int no_task = 1 << 22;  // more than any front has, and times a block no overflow

  const Team& team_;
  bool alone_;
  int phase_ = 0, own_turn_ = 0, own_word_ = 0;
};

}  // namespace gs
