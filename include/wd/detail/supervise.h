// supervise.h: the launcher: starts one worker process per device, watches them, and stops them together.
#pragma once

#include <string>
#include <vector>

namespace wd {

struct LaunchOptions {
  int num_workers = 1;  // on this node
  bool gpus = false;    // each worker sees one GPU, in the order of CUDA_VISIBLE_DEVICES
  int num_nodes = 1;
  int node_index = 0;  // in [0, num_nodes)
  // With several nodes: tcp://HOST:PORT of node 0, or file:///FOLDER that all nodes see.
  std::string rendezvous = {};
  // With several nodes it must be the same on all. Empty: "default"; on a single node it is drawn at random.
  std::string run_id = {};
  int max_restarts = 0;      // of all workers together, from the newest checkpoint
  double grace_seconds = 5;  // from SIGTERM to SIGKILL, after a worker has failed
  // Seconds of silence that count as a hang, by phase.
  double start_seconds = 300, step_seconds = 120, checkpoint_seconds = 600;
};

// Throws UsageError if options contradict each other, or ask for more GPUs than this machine shows.
void check(const LaunchOptions& options);

// GPUs that a worker of this process could use, found through the driver's management library without a CUDA
// context. Returns their names in the form that CUDA_VISIBLE_DEVICES takes. Throws UsageError if
// CUDA_VISIBLE_DEVICES names a device that does not exist.
std::vector<std::string> visible_gpus();

// Runs `command` (its first word is the path of a program) once per worker, with torchrun's environment
// variables, until all have ended. The first failure ends all of them. Returns the exit code: 0 if all
// finished; the code of the first worker that failed, or 128 + n if signal n ended it; 124 if it hung; 129,
// 130 or 143 if this process was asked to stop by HUP, INT or TERM. Throws UsageError as check() does. Call
// it while this process has one thread, ignores SIGPIPE (streams.h) and has not touched CUDA.
int supervise(const LaunchOptions& options, const std::vector<std::string>& command);

}  // namespace wd
