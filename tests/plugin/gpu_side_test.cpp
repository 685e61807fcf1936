// gpu_side_test.cpp: a source file is compiled for a GPU and loaded, also where there is none to run it.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/base/binary_path.h"
#include "src/device/gpu.h"
#include "wd/environment.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class SourceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path library = binary_path(reinterpret_cast<const void*>(&find_environment));
    if (!fs::exists(library.parent_path() / "libwd_cuda.so.0")) GTEST_SKIP() << "a build without CUDA";
    // It asks for no driver, so the program without a GPU can look for CUDA's runtime.
    if (::dlopen((library.parent_path() / "libwd_cuda.so.0").c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
      GTEST_SKIP() << ::dlerror();
    folder_ = fs::temp_directory_path() / concat("wd source ", ::getpid());
    fs::create_directories(folder_);
    fs::copy_file(library.parent_path().parent_path() / "envs" / "cartpole.cu", folder_ / "pole.cu");
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(SourceFile, IsCompiledForAGpuWhereItIsAskedFor) {
  const std::unique_ptr<Environment> environment = make_environment((folder_ / "pole.cu").string());
  EXPECT_EQ(environment->name(), "pole");
  const auto modules = [&](const char* side) {
    int count = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_))
      count += entry.path().extension() == ".so" &&
               entry.path().parent_path().filename().string().starts_with(side);
    return count;
  };
  EXPECT_EQ(modules("cpu-"), 1);
  EXPECT_EQ(modules("cuda-"), 0);
  const char* const named = std::getenv("CUDACXX");
  const std::string nvcc = named == nullptr ? "" : named;
  ::setenv("CUDACXX", "/nowhere/nvcc", 1);
  EXPECT_THAT([&] { environment->cuda(); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("CUDACXX is /nowhere/nvcc"), HasSubstr("unset it"))));
  ::setenv("CUDACXX", nvcc.c_str(), 1);
  if (nvcc.empty() && find_in_path("nvcc").empty() && !fs::exists("/usr/local/cuda/bin/nvcc"))
    GTEST_SKIP() << "there is no nvcc";
  const CudaExecutor* const side = environment->cuda();
  ASSERT_NE(side, nullptr);
  EXPECT_NE(side->step, nullptr);
  EXPECT_NE(binary_path(reinterpret_cast<const void*>(side->step)),
            binary_path(reinterpret_cast<const void*>(&find_environment)));
  EXPECT_EQ(environment->cuda(), side);
  EXPECT_EQ(modules("cuda-"), 1);
}

}  // namespace
}  // namespace wd
