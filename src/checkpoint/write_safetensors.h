// write_safetensors.h: write_safetensors() for a file of a checkpoint, which is synced with the others.
#pragma once

#include "src/base/atomic_file.h"
#include "wd/safetensors.h"

namespace wd {

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata, Durability durability);

}  // namespace wd
