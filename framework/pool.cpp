#include "framework/pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "framework/block_layout.h"
#include "framework/error.h"
#include "framework/quotient_up.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr std::size_t large = std::size_t(1) << 20, least_piece = std::size_t(1) << 18, page = 4096;

// Sizes are rounded up so that batches of nearly equal size share blocks.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = bytes < least_piece ? 512 : bytes < large ? page : std::size_t(1) << 16;
  return std::max(step, round_up(bytes, step));
}

// Blocks that are taken as they were before, in one piece of memory.
class Piece {
 public:
  Piece(std::vector<BlockUse> uses, BlockLayout layout, std::shared_ptr<void> memory)
      : uses_(std::move(uses)), layout_(std::move(layout)), in_use_(uses_.size()), memory_(std::move(memory)) {}

  // Which block is next; none from where another was expected on, or its place is not free yet.
  std::optional<std::size_t> take(std::size_t bytes) {
    as_before_ = as_before_ && next_ < uses_.size() && uses_[next_].bytes == bytes;
    for (std::size_t other = 0; as_before_ && other < next_; ++other)
      as_before_ = !(in_use_[other] && overlap(next_, other));
    if (!as_before_) return {};
    in_use_[next_] = true;
    return next_++;
  }
  void give_back(std::size_t block) { in_use_[block] = false; }
  // Reuses the same memory for other work, which must never run at the same time.
  std::shared_ptr<Piece> again() const { return std::make_shared<Piece>(uses_, layout_, memory_); }
  void* place(std::size_t block) const { return static_cast<char*>(memory_.get()) + layout_.offsets[block]; }

 private:
  bool overlap(std::size_t a, std::size_t b) const {
    return layout_.offsets[a] < layout_.offsets[b] + uses_[b].bytes &&
           layout_.offsets[b] < layout_.offsets[a] + uses_[a].bytes;
  }
  std::vector<BlockUse> uses_;
  BlockLayout layout_;
  std::vector<bool> in_use_;
  std::size_t next_ = 0;
  bool as_before_ = true;
  std::shared_ptr<void> memory_;
};

}  // namespace

// Memory comes from the system in segments. Adjacent pieces form one segment. A large segment is split into blocks on
// request, and returned blocks are joined with their neighbors. A small request gets a small segment that stays one
// block, so that long-lived small blocks do not fragment large segments.
struct Pool::State {
  struct Block {
    std::size_t size;
    bool used, first;  // first: of its segment
    bool piece = false;
  };
  using Blocks = std::map<char*, Block>;

  Allocate allocate;
  Free free;
  std::optional<Pieces> pieces;
  char* pieces_begin = nullptr;  // of their range
  std::mutex mutex;
  Blocks blocks;
  std::set<std::pair<std::size_t, char*>> unused;  // sizes and places of the blocks that are, pieces left out
  MemoryUse use;
  std::optional<Holding> holding;
  struct Noted {
    char *begin, *end;
    std::weak_ptr<void> owned;
  };
  std::vector<Noted> noted;                  // blocks allocated since holding began, ...
  std::vector<BlockUse> uses;                // ... when, ...
  std::map<char*, std::size_t> in_use_here;  // ... and those not yet returned
  int moment = 0;
  std::shared_ptr<Piece> piece;       // null: requests need not match the recorded ones
  std::weak_ptr<const Piece> latest;  // kept alive by the holders of its blocks

  ~State() { drop_unused(); }

  bool is_of_pieces(std::size_t size) const { return pieces && size >= least_piece; }

  // The first unused part of the pieces that is large enough, split to size. Compared with the smallest such part, held
  // memory was 10 % less for a training of cifar10.yaml.
  Blocks::iterator find_in_pieces(std::size_t size) {
    const auto block = std::find_if(blocks.lower_bound(pieces_begin), blocks.end(), [size](const auto& each) {
      return each.second.piece && !each.second.used && each.second.size >= size;
    });
    if (block == blocks.end()) return block;
    take_from_unused(block);
    return split(block, size);
  }

  // Splits a piece: its first `size` bytes, and an unused rest.
  Blocks::iterator split(Blocks::iterator block, std::size_t size) {
    if (const std::size_t rest = block->second.size - size; rest > 0) {
      block->second.size = size;
      add_unused(join_with_next(blocks.emplace(block->first + size, Block{rest, false, false, true}).first));
    }
    return block;
  }

  Blocks::iterator join_with_next(Blocks::iterator block) {
    const auto next = std::next(block);
    if (next == blocks.end() || next->second.used || next->second.first) return block;
    take_from_unused(next);
    block->second.size += next->second.size;
    blocks.erase(next);
    return block;
  }

  // Returns the smallest block that fits without waste, split to size; end() if there is none.
  Blocks::iterator find_unused(std::size_t size) {
    if (is_of_pieces(size)) return find_in_pieces(size);
    const auto found = unused.lower_bound({size, nullptr});
    // Half of a small block may lie idle.
    if (found == unused.end() || (size < large && found->first > 2 * size)) return blocks.end();
    const auto block = blocks.find(found->second);
    unused.erase(found);
    use.cached -= block->second.size;
    if (const std::size_t rest = block->second.size - size; size >= large && rest >= large) {
      block->second.size = size;
      add_unused(blocks.emplace(block->first + size, Block{rest, false, false}).first);
    }
    return block;
  }

  Blocks::iterator ask_system(std::size_t size) {
    if (is_of_pieces(size)) return extend(size);
    void* const segment = allocate(size);
    if (segment == nullptr) return blocks.end();
    ++use.system_allocations;
    return blocks.emplace(static_cast<char*>(segment), Block{size, false, true}).first;
  }

  // Before so much is added: the smallest unused parts are freed if the pool would hold much more than was ever in use.
  void limit_held(std::size_t size) {
    const std::size_t spare = std::max(std::size_t(4) << 20, pieces->granularity);
    const std::size_t most_in_use = std::max(use.peak, use.in_use + size), most = most_in_use + most_in_use / 8 + spare;
    std::size_t held = use.in_use + use.cached + size;
    std::vector<Blocks::iterator> unused_parts;
    for (auto block = blocks.lower_bound(pieces_begin); held > most && block != blocks.end(); ++block)
      if (block->second.piece && !block->second.used) unused_parts.push_back(block);
    std::sort(unused_parts.begin(), unused_parts.end(),
              [](const auto& a, const auto& b) { return a->second.size < b->second.size; });
    for (auto part = unused_parts.begin(); held > most && part != unused_parts.end(); ++part) held -= drop(*part);
  }

  // Returns the lowest address where `size` bytes fit: at the beginning of the range, or after a block. If that block
  // is unused, only the missing ones are requested.
  Blocks::iterator extend(std::size_t size) {
    limit_held(size);
    const std::size_t granularity = pieces->granularity, whole = round_up(size, granularity);
    if (pieces_begin != nullptr && fits(pieces_begin, blocks.lower_bound(pieces_begin), whole))
      if (const auto added = add_piece(pieces_begin, whole); added != blocks.end()) return split(added, size);
    for (auto block = blocks.lower_bound(pieces_begin); block != blocks.end(); ++block) {
      if (!block->second.piece) continue;
      char* const end = block->first + block->second.size;
      const std::size_t lacking = block->second.used ? whole : round_up(size - block->second.size, granularity);
      if (!fits(end, std::next(block), lacking)) continue;
      const auto added = add_piece(end, lacking);
      if (added == blocks.end()) continue;
      added->second.first = false;
      if (block->second.used) return split(added, size);
      take_from_unused(block);
      block->second.size += lacking;
      blocks.erase(added);
      return split(block, size);
    }
    const auto added = add_piece(nullptr, whole);
    if (added == blocks.end()) return added;
    if (pieces_begin == nullptr || added->first < pieces_begin) pieces_begin = added->first;
    return split(added, size);
  }

  bool fits(char* begin, Blocks::const_iterator next, std::size_t size) const {
    return next == blocks.end() || begin + size <= next->first;
  }

  Blocks::iterator add_piece(char* at, std::size_t size) {
    auto* const begin = static_cast<char*>(pieces->allocate(at, size));
    if (begin == nullptr) return blocks.end();
    ++use.system_allocations;
    const auto added = blocks.emplace(begin, Block{size, false, true, true}).first;
    if (const auto next = std::next(added); next != blocks.end() && next->first == begin + size && next->second.piece)
      next->second.first = false;
    return added;
  }

  void add_unused(Blocks::iterator block) {
    block->second.used = false;
    if (!block->second.piece) unused.emplace(block->second.size, block->first);
    use.cached += block->second.size;
  }

  void take_from_unused(Blocks::iterator block) {
    if (!block->second.piece) unused.erase({block->second.size, block->first});
    use.cached -= block->second.size;
  }

  static bool overlaps(const Blocks::value_type& block, const std::vector<Noted>& taken) {
    char* const begin = block.first;
    char* const end = begin + block.second.size;
    return std::any_of(taken.begin(), taken.end(),
                       [&](const Noted& other) { return other.begin < end && begin < other.end; });
  }

  // Segments that are not pieces can go only if they are unused as a whole, and none that is about to be held can.
  void drop_unused() {
    for (auto block = blocks.begin(); block != blocks.end();) {
      const auto next = std::next(block);
      const bool about_to_be_held = holding.value_or(Holding::fresh) != Holding::fresh && overlaps(*block, noted);
      if (!block->second.used && !about_to_be_held && (block->second.piece || is_segment(block))) drop(block);
      block = next;
    }
  }

  bool is_segment(Blocks::const_iterator block) const {
    const auto next = std::next(block);
    return block->second.first && (next == blocks.end() || next->second.first);
  }

  // Frees an unused block; of a piece, only complete granules. Returns the bytes freed.
  std::size_t drop(Blocks::iterator block) {
    if (block->second.piece) return drop_piece(block);
    const std::size_t bytes = block->second.size;
    take_from_unused(block);
    free(block->first);
    if (const auto next = std::next(block); next != blocks.end())
      next->second.first = true;  // nothing is before it now
    blocks.erase(block);
    return bytes;
  }

  std::size_t drop_piece(Blocks::iterator block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block->first);
    const std::size_t size = block->second.size, granularity = pieces->granularity;
    const std::size_t begin = round_up(address, granularity) - address;
    const std::size_t end = std::max((address + size) / granularity * granularity, address) - address;
    if (begin >= end) return 0;
    take_from_unused(block);
    pieces->free(block->first + begin, end - begin);
    if (end < size)
      add_unused(blocks.emplace(block->first + end, Block{size - end, false, true, true}).first);
    else if (const auto next = std::next(block); next != blocks.end())
      next->second.first = true;  // nothing is before it now
    if (begin == 0) {
      blocks.erase(block);
    } else {
      block->second.size = begin;
      add_unused(block);
    }
    return end - begin;
  }

  void give_back(char* place) {
    const std::lock_guard lock(mutex);
    if (const auto known = in_use_here.find(place); known != in_use_here.end()) {
      uses[known->second].returned = moment++;
      in_use_here.erase(known);
    }
    auto block = blocks.find(place);
    use.in_use -= block->second.size;
    join_with_next(block);
    if (!block->second.first && !std::prev(block)->second.used) {
      const auto before = std::prev(block);
      take_from_unused(before);
      before->second.size += block->second.size;
      blocks.erase(block);
      block = before;
    }
    add_unused(block);
  }

  void note(Blocks::iterator block, std::size_t asked, const std::shared_ptr<void>& owner) {
    noted.push_back({block->first, block->first + block->second.size, owner});
    in_use_here[block->first] = uses.size();
    uses.push_back({asked, moment, moment + 1});
    ++moment;
  }

  std::shared_ptr<void> take_block(Blocks::iterator block, const std::shared_ptr<State>& self) {
    block->second.used = true;
    use.in_use += block->second.size;
    use.peak = std::max(use.peak, use.in_use);
    // The block keeps the state alive, so a tensor may outlive its stream.
    return {block->first, [state = self](void* returned) { state->give_back(static_cast<char*>(returned)); }};
  }
};

Pool::Pool(Allocate allocate, Free free, std::optional<Pieces> pieces) : state_(std::make_shared<State>()) {
  state_->allocate = std::move(allocate);
  state_->free = std::move(free);
  state_->pieces = std::move(pieces);
}

std::shared_ptr<void> Pool::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(state_->mutex);
  if (const std::shared_ptr<Piece> piece = state_->piece)
    if (const auto index = piece->take(size))
      return {piece->place(*index), [state = state_, piece, index = *index](void*) {
                const std::lock_guard returning(state->mutex);
                piece->give_back(index);
              }};
  auto block = state_->find_unused(size);
  if (block == state_->blocks.end()) block = state_->ask_system(size);
  if (block == state_->blocks.end()) {  // what lies unused may be enough
    state_->drop_unused();
    block = state_->ask_system(size);
  }
  if (block == state_->blocks.end()) {
    throw OutOfMemory(join("out of memory: ", format_bytes(bytes), " requested, ", format_bytes(state_->use.in_use),
                           " in use. A smaller batch size or convolution.workspace_limit needs less"));
  }
  std::shared_ptr<void> owner = state_->take_block(block, state_);
  if (state_->holding) state_->note(block, size, owner);
  return owner;
}

void Pool::start_holding(Holding as) {
  std::vector<BlockUse> uses;
  std::shared_ptr<const Piece> latest;  // outlives the locks: its destructor takes one itself
  {
    const std::lock_guard lock(state_->mutex);
    uses = state_->uses;
    if (as == Holding::again) latest = state_->latest.lock();
  }
  const auto laid_out = [&]() -> std::shared_ptr<Piece> {
    try {
      BlockLayout layout = lay_out(uses);
      std::shared_ptr<void> memory = take(layout.bytes);
      return std::make_shared<Piece>(uses, std::move(layout), std::move(memory));
    } catch (const OutOfMemory&) {  // blocks here and there may still do
      return nullptr;
    }
  };
  std::shared_ptr<Piece> piece = latest                                   ? latest->again()
                                 : as == Holding::before && !uses.empty() ? laid_out()
                                                                          : nullptr;
  const std::lock_guard lock(state_->mutex);
  state_->uses.clear();
  state_->piece = std::move(piece);
  state_->holding = as;
}

std::vector<std::shared_ptr<void>> Pool::stop_holding() {
  std::vector<std::shared_ptr<void>> held;  // outlives the lock: freeing these blocks takes the lock
  const std::lock_guard lock(state_->mutex);
  const auto noted = std::exchange(state_->noted, {});
  state_->holding.reset();
  for (const auto& [place, block] : std::exchange(state_->in_use_here, {}))
    state_->uses[block].returned = state_->moment;
  if (auto piece = std::exchange(state_->piece, nullptr)) {
    state_->latest = piece;
    held.push_back(std::move(piece));
  }
  for (const State::Noted& block : noted)
    if (auto owner = block.owned.lock()) held.push_back(std::move(owner));
  for (auto block = state_->blocks.begin(); block != state_->blocks.end(); ++block) {
    if (block->second.used || !State::overlaps(*block, noted)) continue;
    state_->take_from_unused(block);
    held.push_back(state_->take_block(block, state_));
  }
  return held;
}

void Pool::release_cached() {
  const std::lock_guard lock(state_->mutex);
  state_->drop_unused();
}

MemoryUse Pool::use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->use;
}

void Pool::reset_peak() {
  const std::lock_guard lock(state_->mutex);
  state_->use.peak = state_->use.in_use;
}

}  // namespace twiddle
