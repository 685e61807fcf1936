// movie.cpp: draws frames as viewer.js does, and sends them through a pipe to ffmpeg.
#include "src/play/movie.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/program_name.h"
#include "src/play/canvas.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr double kWidth = 640.0, kHeight = 480.0, kMargin = 10.0;  // pixels; the world fits into them
constexpr int kTrail = 25;                                         // steps that a trail goes back
constexpr int kFade = 6;  // steps that the ring fades where an agent left the game
constexpr Color kPaper{255, 255, 255}, kGrid{221, 225, 230}, kScenery{150, 156, 164};
constexpr Color kRoles[] = {{213, 94, 0},    {43, 123, 208}, {210, 154, 179}, {129, 73, 88},
                            {162, 149, 247}, {21, 88, 172},  {166, 112, 136}, {174, 64, 6}};

// Draws frames of one environment.
class Painter {
 public:
  explicit Painter(const Rollout& rollout)
      : spec_(rollout.spec), drawing_(rollout.spec.drawing), canvas_(size()) {
    const std::vector<StateField> fields = recorded_fields(rollout.layout);
    for (std::size_t f = 0; f < fields.size(); ++f)
      fields_[fields[f].name] = {f, fields[f].per_agent, fields[f].array};
    for (std::size_t r = 0; r < spec_.roles.size(); ++r)
      for (int slot = 0; slot < spec_.roles[r].count; ++slot)
        agents_.push_back({r, static_cast<std::size_t>(slot)});
  }

  const Canvas& paint(const EpisodeRecord& episode, int frame) {
    episode_ = &episode;
    canvas_.clear(kPaper);
    paint_grid();
    bool trails = true;  // still to paint: on the ground, below agents
    for (const drawing::Shape& shape : drawing_.shapes) {
      if (!is_per_agent(shape)) {
        const int count = shape.objects < 0 ? 1 : shape.objects;
        for (int i = 0; i < count; ++i) paint_shape(shape, frame, static_cast<std::size_t>(i), kScenery);
        continue;
      }
      if (std::exchange(trails, false))
        for (const drawing::Shape& circle : drawing_.shapes)
          if (is_per_agent(circle) && circle.kind == drawing::Shape::Kind::kCircle)
            paint_trails(circle, frame);
      for (std::size_t a = 0; a < agents_.size(); ++a)
        if (is_shown(shape, a, frame)) paint_shape(shape, frame, a, color_of(a));
    }
    paint_exits(frame);
    return canvas_;
  }

 private:
  struct Field {
    std::size_t index;
    bool per_agent, array;
  };
  struct Agent {
    std::size_t role, slot;
  };

  Canvas size() {
    scale_ = std::min(kWidth / (drawing_.right - drawing_.left), kHeight / (drawing_.top - drawing_.bottom));
    const auto even = [](double length) { return 2 * static_cast<int>(std::ceil(length / 2.0 + kMargin)); };
    return {even((drawing_.right - drawing_.left) * scale_), even((drawing_.top - drawing_.bottom) * scale_)};
  }

  double x(double world) const { return kMargin + (world - drawing_.left) * scale_; }
  double y(double world) const { return kMargin + (drawing_.top - world) * scale_; }
  Color color_of(std::size_t agent) const { return kRoles[agents_[agent].role % std::size(kRoles)]; }

  double value(const drawing::Quantity& quantity, int frame, std::size_t i) const {
    if (quantity.field.empty()) return quantity.offset;
    const Field field = fields_.at(quantity.field);
    const Series& series = episode_->state[field.index];
    const std::size_t at = field.per_agent || field.array ? i : 0;
    return quantity.offset +
           quantity.scale *
               series.values[static_cast<std::size_t>(frame) * static_cast<std::size_t>(series.width) + at];
  }

  bool is_per_agent(const drawing::Shape& shape) const {
    return shape.objects < 0 && std::ranges::any_of(
                                    shape.quantities(),
                                    [&](const drawing::Quantity* q) {
                                      return !q->field.empty() && fields_.at(q->field).per_agent;
                                    });
  }
  bool is_in_game(std::size_t agent, int frame) const {
    const Series& series = episode_->roles[agents_[agent].role].in_game;
    return series.values[static_cast<std::size_t>(frame) * static_cast<std::size_t>(series.width) +
                         agents_[agent].slot] != 0.0;
  }
  bool is_shown(const drawing::Shape& shape, std::size_t agent, int frame) const {
    return (shape.role.empty() || shape.role == spec_.roles[agents_[agent].role].name) &&
           is_in_game(agent, frame);
  }

  void paint_grid() {
    const double left = x(drawing_.left), right = x(drawing_.right), top = y(drawing_.top),
                 bottom = y(drawing_.bottom);
    canvas_.line(left, top, right, top, 1.0, kGrid);
    canvas_.line(left, bottom, right, bottom, 1.0, kGrid);
    canvas_.line(left, top, left, bottom, 1.0, kGrid);
    canvas_.line(right, top, right, bottom, 1.0, kGrid);
    if (drawing_.grid * scale_ < 3.0) return;
    const auto each_line = [&](double from, double to, const auto& draw) {
      for (int k = 0; from + k * drawing_.grid <= to; ++k) draw(from + k * drawing_.grid);
    };
    each_line(drawing_.left, drawing_.right,
              [&](double at) { canvas_.line(x(at), top, x(at), bottom, 1.0, kGrid); });
    each_line(drawing_.bottom, drawing_.top,
              [&](double at) { canvas_.line(left, y(at), right, y(at), 1.0, kGrid); });
  }

  void paint_shape(const drawing::Shape& shape, int frame, std::size_t i, Color color) {
    const double center_x = x(value(shape.x, frame, i)), center_y = y(value(shape.y, frame, i));
    const double width = value(shape.width, frame, i) * scale_, angle = -value(shape.angle, frame, i);
    const auto ray = [&](double length, double thickness) {
      canvas_.line(center_x, center_y, center_x + length * std::cos(angle),
                   center_y + length * std::sin(angle), thickness, color);
    };
    if (width <= 0.0 && shape.kind != drawing::Shape::Kind::kLine) return;  // what has no size is not there
    switch (shape.kind) {
      case drawing::Shape::Kind::kCircle: {
        const double radius = std::max(width, 3.0);
        canvas_.circle(center_x, center_y, radius, color);
        if (shape.faces) ray(radius * 1.8, std::max(radius / 3.0, 1.5));
        break;
      }
      case drawing::Shape::Kind::kRectangle:
        canvas_.rectangle(center_x, center_y, width, value(shape.height, frame, i) * scale_, angle, color);
        break;
      case drawing::Shape::Kind::kLine:
        ray(width, 4.0);
        break;
      case drawing::Shape::Kind::kCells:
        paint_cell(shape, frame, static_cast<int>(i));
        break;
    }
  }

  void paint_cell(const drawing::Shape& shape, int frame, int i) {
    const double number = std::round(value(shape.x, frame, static_cast<std::size_t>(i)));
    const bool named = number >= 0.0 && number < static_cast<double>(shape.colors.size());
    const std::string name = named ? shape.colors[static_cast<std::size_t>(number)] : "gray";
    if (name.empty()) return;
    Color color = kScenery;
    if (name.starts_with('#')) {
      const unsigned long rgb = std::stoul(name.substr(1), nullptr, 16);
      const auto byte = [&](int shift) { return static_cast<std::uint8_t>(rgb >> shift & 0xff); };
      color = {byte(16), byte(8), byte(0)};
    } else if (const auto role = std::ranges::find(spec_.roles, name, &Role::name);
               role != spec_.roles.end()) {
      color = kRoles[static_cast<std::size_t>(role - spec_.roles.begin()) % std::size(kRoles)];
    }
    const double center_x = x(i % shape.columns), center_y = y(i / shape.columns);
    if (shape.discs)
      canvas_.circle(center_x, center_y, 0.4 * scale_, color);
    else
      canvas_.rectangle(center_x, center_y, scale_, scale_, 0.0, color);
  }

  void paint_trails(const drawing::Shape& shape, int frame) {
    // A position that wraps around jumps: no line.
    const double jump =
        std::max(drawing_.right - drawing_.left, drawing_.top - drawing_.bottom) * scale_ / 3.0;
    const int first = std::max(0, frame - kTrail);
    for (std::size_t a = 0; a < agents_.size(); ++a) {
      if (!is_shown(shape, a, frame)) continue;
      for (int f = first; f < frame; ++f) {
        if (!is_in_game(a, f)) continue;
        const double x0 = x(value(shape.x, f, a)), x1 = x(value(shape.x, f + 1, a));
        const double y0 = y(value(shape.y, f, a)), y1 = y(value(shape.y, f + 1, a));
        if (std::abs(x1 - x0) < jump && std::abs(y1 - y0) < jump)
          canvas_.line(x0, y0, x1, y1, 1.5, color_of(a), 0.45 * (f - frame + kTrail + 1) / (kTrail + 1));
      }
    }
  }

  // A ring that grows and fades where an agent left the game.
  void paint_exits(int frame) {
    const auto shape =
        std::ranges::find_if(drawing_.shapes, [&](const auto& one) { return is_per_agent(one); });
    if (shape == drawing_.shapes.end()) return;
    for (int f = std::max(1, frame - kFade + 1); f <= frame; ++f) {
      for (std::size_t a = 0; a < agents_.size(); ++a) {
        if (!is_in_game(a, f - 1) || is_in_game(a, f)) continue;
        const double age = frame - f;
        canvas_.ring(x(value(shape->x, f, a)), y(value(shape->y, f, a)), 5.0 + 2.5 * age, 2.0, color_of(a),
                     1.0 - age / kFade);
      }
    }
  }

  const Spec& spec_;
  const Drawing& drawing_;
  const EpisodeRecord* episode_ = nullptr;
  std::map<std::string, Field> fields_;
  std::vector<Agent> agents_;
  double scale_ = 1.0;
  Canvas canvas_;
};

// Colors of a GIF are chosen from all frames.
constexpr const char* kGifFilter =
    "split[all][frames];[all]palettegen=stats_mode=full[palette];[frames][palette]paletteuse=dither=none:"
    "diff_mode=rectangle";

// Pixels of red, green and blue that belong to others.
struct Frame {
  int width, height;
  const void* bytes;
  std::size_t size;
};

// Videos have even sides: of a picture with an odd one, ffmpeg leaves out the last row or column.
Frame frame_of(const EpisodeRecord& episode, int frame, Painter* painter) {
  if (episode.pictures.empty()) {
    const Canvas& canvas = painter->paint(episode, frame);
    return {canvas.width(), canvas.height(), canvas.bytes().data(), canvas.bytes().size()};
  }
  const Picture& first = episode.pictures.front();
  const Picture& picture = episode.pictures.at(static_cast<std::size_t>(frame));
  if (picture.width == 0)
    throw UsageError(
        "the game makes no pictures (OutsideReplica::picture, wd/outside.h): write a page (.html)");
  WD_CHECK(picture.width == first.width && picture.height == first.height,
           "the environment's pictures change their size from ", first.width, "x", first.height, " to ",
           picture.width, "x", picture.height, ", and a movie has one size");
  return {picture.width, picture.height, picture.pixels.data(), picture.pixels.size()};
}

// The left or the right half of a picture of two.
void copy_rows(const Frame& frame, std::vector<std::uint8_t>& pair, std::size_t half) {
  const std::size_t row = frame.size / static_cast<std::size_t>(frame.height);
  const auto* bytes = static_cast<const std::uint8_t*>(frame.bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(frame.height); ++y)
    std::copy_n(bytes + y * row, row, pair.data() + (2 * y + half) * row);
}

}  // namespace

bool is_movie(const std::filesystem::path& file) {
  return file.extension() == ".gif" || file.extension() == ".mp4";
}

void check_movie(const Rollout& rollout, const std::filesystem::path& file) {
  if (!rollout.shows_itself && rollout.spec.drawing.shapes.empty())
    throw UsageError(
        concat("--out ", file.string(), ": environment ", rollout.environment,
               " has no drawing (Spec::drawing, wd/drawing.h); write a page (.html), which shows a table"));
  if (std::system("command -v ffmpeg >/dev/null 2>&1") != 0)
    throw UsageError(concat(
        "--out ", file.string(),
        ": there is no ffmpeg in PATH, which writes GIF and MP4; install it "
        "(Debian: apt install ffmpeg; run.play() of Python also takes that of imageio-ffmpeg), or write a "
        "page (.html)"));
}

std::string movie_of(const Rollout& rollout, const std::filesystem::path& file, int frames_per_second) {
  std::optional<Painter> painter;
  if (!rollout.spec.drawing.shapes.empty()) painter.emplace(rollout);
  const bool gif = file.extension() == ".gif";
  // ffmpeg writes to a file in memory: a folder that others filled cannot redirect it, and a disk cannot be
  // too full for it.
  const Descriptor memory(::memfd_create("movie", 0));
  if (!memory) throw_file_error("movie", "make a file in memory");
  const std::string result = concat("/proc/self/fd/", memory.get());  // here and in child processes
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(nullptr, pclose);
  bool written = true;
  std::vector<std::uint8_t> pair;
  const std::size_t half = rollout.episodes.size() / (rollout.beside ? 2 : 1);
  for (std::size_t e = 0; e < half; ++e) {
    const EpisodeRecord& episode = rollout.episodes[e].record;
    const EpisodeRecord& other = rollout.episodes[rollout.beside ? e + half : e].record;
    for (int frame = 0; frame <= std::max(episode.steps, other.steps) && written; ++frame) {
      Frame picture = frame_of(episode, std::min(frame, episode.steps), painter ? &*painter : nullptr);
      if (rollout.beside) {
        pair.resize(2 * picture.size);
        copy_rows(picture, pair, 0);
        picture = frame_of(other, std::min(frame, other.steps), painter ? &*painter : nullptr);
        copy_rows(picture, pair, 1);
        picture = {2 * picture.width, picture.height, pair.data(), pair.size()};
      }
      if (pipe == nullptr) {
        const std::string command = concat(
            "ffmpeg -v error -y -f rawvideo -pix_fmt rgb24 -s ", picture.width, "x", picture.height, " -r ",
            frames_per_second, " -i - ",
            gif ? concat("-vf ", shell_word(kGifFilter), " -f gif ")
                : "-vf 'crop=trunc(iw/2)*2:trunc(ih/2)*2' -pix_fmt yuv420p -movflags +faststart -f mp4 ",
            "file:", result);
        pipe.reset(::popen(command.c_str(), "w"));
        if (pipe == nullptr) throw std::runtime_error("cannot start ffmpeg");
      }
      written = std::fwrite(picture.bytes, 1, picture.size, pipe.get()) == picture.size;
    }
  }
  const bool ended_well = pipe != nullptr && ::pclose(pipe.release()) == 0;
  std::string movie = read_whole(result).value_or("");
  // ffmpeg 5.1 exits with 0 even if it could not write everything.
  const bool whole = gif ? movie.ends_with(';') : movie.find("moov") != std::string::npos;
  if (!ended_well || !written || !whole) throw std::runtime_error("ffmpeg could not write " + file.string());
  return movie;
}

}  // namespace wd
