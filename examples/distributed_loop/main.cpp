// main.cpp: a custom training loop on several workers. `distributed_loop 4` starts four workers; torchrun and
// Slurm can start them too.
//
// Linear regression: each worker draws its own data, and gradients are summed over all workers, so that all
// workers take the same steps. If you kill one worker while it runs, the others end and the error message
// names the killed one.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <wd/heartbeat.h>
#include <wd/launch.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kFeatures = 8, kRows = 256, kSteps = 200;

int work(wd::ProcessGroup& group) {
  const at::Tensor truth = at::arange(kFeatures, at::kFloat);
  at::Tensor weights = at::zeros({kFeatures});
  at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(group.rank()));
  at::Tensor gradient_and_loss = at::empty({kFeatures + 1});  // one tensor, so one all_reduce
  for (int step = 1; step <= kSteps; ++step) {
    // The launcher sees how far each worker is, and detects a worker that hangs.
    wd::heartbeat::iteration(step);
    const at::Tensor x = at::randn({kRows, kFeatures}, generator);
    const at::Tensor error = x.matmul(weights - truth);
    gradient_and_loss.narrow(0, 0, kFeatures).copy_(x.t().matmul(error));
    gradient_and_loss[kFeatures].copy_(error.square().sum());
    group.all_reduce(gradient_and_loss);
    gradient_and_loss.div_(kRows * group.size());
    weights.sub_(gradient_and_loss.narrow(0, 0, kFeatures), 0.1);
    if (step % 50 == 0 && group.leads())
      std::printf("step %d, loss %.6f\n", step, gradient_and_loss[kFeatures].item<double>());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  wd::LaunchOptions options;
  if (argc > 1) options.num_workers = std::atoi(argv[1]);
  return wd::launch(options, work);
}
