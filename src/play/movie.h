// movie.h: recorded episodes as a GIF or an MP4, through ffmpeg.
#pragma once

#include <filesystem>

#include "src/play/rollout.h"

namespace wd {

// True for names that end in .gif or .mp4.
bool is_movie(const std::filesystem::path& file);

// Throws UsageError if the environment has no drawing, or if there is no ffmpeg.
void check_movie(const Rollout& rollout, const std::filesystem::path& file);

// Draws all episodes, one after the other, a frame per step, as the page does (without text). Returns the
// content of the file. Throws std::runtime_error if ffmpeg fails; what it says goes to stderr.
std::string movie_of(const Rollout& rollout, const std::filesystem::path& file, int frames_per_second);

}  // namespace wd
