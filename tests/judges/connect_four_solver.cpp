// connect_four_solver.cpp: the exact value of Connect Four positions, by alpha-beta with a table. Nothing of
// it is shared with the game that it judges. Called from Python (connect_four.py).
//
// The value of a move is 0 if the game is then drawn, and else, with best play of both, 22 less the stones
// that the winner has dropped when he wins, with a minus if that is the other one.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <unordered_set>
#include <vector>

namespace {

using Bits = std::uint64_t;
constexpr int kRows = 6, kColumns = 7, kStones = kRows * kColumns;
constexpr Bits kFloor = 0x0040810204081,
               kBoard = kFloor * 0x3f;  // seven bits to a column, the last one empty
constexpr Bits column_bits(int column) { return Bits{0x3f} << (7 * column); }

struct Position {
  Bits own = 0, taken = 0;  // own: of who is on turn

  int plies() const { return std::popcount(taken); }
  Bits landings() const { return (taken + kFloor) & kBoard; }
  Position after(Bits stone) const { return {own ^ taken, taken | stone}; }
  Bits key() const { return own + taken + kFloor; }  // own stones above, and the landing cell: unique
};

bool is_won(Bits stones) {
  for (const int d : {1, 6, 7, 8}) {
    const Bits pairs = stones & stones >> d;
    if ((pairs & pairs >> 2 * d) != 0) return true;
  }
  return false;
}

// Empty cells that complete four in a line.
Bits completing(Bits stones, Bits taken) {
  Bits cells = stones << 1 & stones << 2 & stones << 3;
  for (const int d : {6, 7, 8})
    for (int gap = 0; gap < 4; ++gap) {  // the empty cell is the first to the fourth of the line
      Bits line = ~Bits{0};
      for (int k = 0; k < 4; ++k) {
        if (k == gap) continue;
        const int by = (k - gap) * d;
        line &= by > 0 ? stones >> by : stones << -by;
      }
      cells |= line;
    }
  return cells & kBoard & ~taken;
}

class Solver {
 public:
  // The value of the position for who is on turn, if it lies between low and high; else a bound on its side.
  // Nobody has won yet, and who is on turn cannot win at once.
  int search(const Position& p, int low, int high) {
    const int plies = p.plies();
    const Bits lands = p.landings(), others = completing(p.own ^ p.taken, p.taken);
    const int loses_next = -(kStones - plies) / 2;
    Bits moves = lands;
    if (const Bits forced = moves & others; forced != 0) {
      if ((forced & (forced - 1)) != 0) return loses_next;
      moves = forced;
    }
    moves &= ~(others >> 1);  // not below a cell at which the other one wins
    if (moves == 0) return lands == 0 ? 0 : loses_next;
    if (plies >= kStones - 2) return 0;
    const int least = -(kStones - 2 - plies) / 2;  // the other one wins neither now nor with the next stone
    if (low < least) low = least;
    int most = (kStones - 1 - plies) / 2;
    Entry& entry = table_[p.key() % kEntries];
    if (entry.key == p.key()) most = entry.most;
    if (high > most) high = most;
    if (low >= high) return high;

    struct Move {
      Bits stone;
      int threats;
    };
    std::array<Move, kColumns> order;
    int count = 0;
    for (const int column : {3, 2, 4, 1, 5, 0, 6}) {
      const Bits stone = moves & column_bits(column);
      if (stone == 0) continue;
      const int threats = std::popcount(completing(p.own | stone, p.taken | stone));
      int at = count++;
      for (; at > 0 && order[static_cast<std::size_t>(at - 1)].threats < threats; --at)
        order[static_cast<std::size_t>(at)] = order[static_cast<std::size_t>(at - 1)];
      order[static_cast<std::size_t>(at)] = {stone, threats};
    }
    for (int k = 0; k < count; ++k) {
      const int value = -search(p.after(order[static_cast<std::size_t>(k)].stone), -high, -low);
      if (value >= high) return value;
      if (value > low) low = value;
    }
    table_[p.key() % kEntries] = {p.key(), static_cast<std::int8_t>(low)};
    return low;
  }

  int value(const Position& p) {
    if (p.plies() == kStones) return 0;
    if ((completing(p.own, p.taken) & p.landings()) != 0) return (kStones + 1 - p.plies()) / 2;
    int low = -(kStones - p.plies()) / 2, high = (kStones + 1 - p.plies()) / 2;
    while (low < high) {
      int middle = low + (high - low) / 2;
      if (middle <= 0 && low / 2 < middle)
        middle = low / 2;
      else if (middle >= 0 && high / 2 > middle)
        middle = high / 2;
      const int bound = search(p, middle, middle + 1);
      if (bound <= middle)
        high = bound;
      else
        low = bound;
    }
    return low;
  }

 private:
  struct Entry {
    Bits key = 0;
    std::int8_t most = 0;
  };
  static constexpr std::size_t kEntries = 8388593;  // a prime
  std::vector<Entry> table_ = std::vector<Entry>(kEntries);
};

// Columns from "0" to "6"; false if a move is impossible or goes on after a win.
bool play(const char* columns, Position& p) {
  for (; *columns != '\0'; ++columns) {
    if (*columns < '0' || *columns > '6' || is_won(p.own ^ p.taken)) return false;
    const Bits stone = p.landings() & column_bits(*columns - '0');
    if (stone == 0) return false;
    p = p.after(stone);
  }
  return !is_won(p.own ^ p.taken);
}

constexpr int kMiddleFirst[] = {3, 2, 4, 1, 5, 0, 6};

// Of a search that sees nothing beyond `depth` plies: positive if who is on turn wins, the sooner the higher.
int shallow(const Position& p, int depth, int low, int high) {
  if (depth == 0) return 0;
  if ((completing(p.own, p.taken) & p.landings()) != 0) return 99;
  for (const int column : kMiddleFirst) {
    const Bits stone = p.landings() & column_bits(column);
    if (stone == 0) continue;
    int value = -shallow(p.after(stone), depth - 1, -high, -low);
    value -= (value > 0) - (value < 0);
    if (value > low) low = value;
    if (low >= high) return low;
  }
  return p.landings() == 0 ? 0 : low;
}

}  // namespace

extern "C" {

// The move of a search of so many plies; of equally good ones that nearest to the middle.
int connect_four_shallow(const char* columns, int depth) {
  Position p;
  int best = -1, most = -1000;
  if (!play(columns, p)) return best;
  for (const int column : kMiddleFirst) {
    const Bits stone = p.landings() & column_bits(column);
    if (stone == 0) continue;
    const int value = is_won(p.own | stone) ? 1000 : -shallow(p.after(stone), depth - 1, -1000, 1000);
    if (value > most) best = column, most = value;
  }
  return best;
}

// Values of the seven moves; 100: the column is full. Returns false if the columns are no game that goes on.
bool connect_four_values(const char* columns, int* values) {
  static Solver solver;
  Position p;
  if (!play(columns, p)) return false;
  for (int column = 0; column < kColumns; ++column) {
    const Bits stone = p.landings() & column_bits(column);
    values[column] = stone == 0              ? 100
                     : is_won(p.own | stone) ? (kStones + 1 - p.plies()) / 2
                                             : -solver.value(p.after(stone));
  }
  return true;
}

// How many positions can be reached in exactly so many plies, of games that are not over before.
std::int64_t connect_four_positions(int plies) {
  std::vector<Position> level = {Position{}};
  for (int k = 0; k < plies; ++k) {
    std::unordered_set<Bits> seen;
    std::vector<Position> next;
    for (const Position& p : level) {
      if (is_won(p.own ^ p.taken)) continue;
      for (int column = 0; column < kColumns; ++column) {
        const Bits stone = p.landings() & column_bits(column);
        if (stone != 0 && seen.insert(p.after(stone).key()).second) next.push_back(p.after(stone));
      }
    }
    level = std::move(next);
  }
  return static_cast<std::int64_t>(level.size());
}
}
