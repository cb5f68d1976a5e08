#include "apps/command_line/command_line.h"
#include "apps/command_line/flags.h"
#include "framework/cpu/thread_settings.h"

using namespace twiddle;

int main(int argc, char** argv) {
  apply_thread_settings(argv);
  const unsigned model = device_flags | config_flags | json_flag;
  const std::vector<Verb> verbs{
      {"train", "Train a network and keep everything in a run folder", add_train, model | data_flags | train_flags},
      {"eval", "Measure a trained network on its validation images", add_eval, model | data_flags},
      {"predict", "Name what is on pictures", add_predict, model},
      {"merge", "Put batch norms and sums of convolutions into single convolutions, for evaluation", add_merge, model},
      {"time", "Time a training iteration as a whole, then layer by layer", add_time, model},
      {"tune", "Choose the fastest convolution plans of a network and keep the choices", add_tune, model},
      {"conv", "Run one convolution on arrays from a safetensors file", add_conv, device_flags | json_flag},
      {"summary", "Print a network's layers, parameters, operations and memory", add_summary, model},
      {"check", "Check configs, data, shapes and memory without training", add_check, model | data_flags | train_flags},
      {"devices", "List what computations can run on", add_devices, json_flag},
  };
  return run_command_line(
      {"twiddle", "Twiddle trains convolutional networks from a YAML file.",
       "'twiddle VERB --help' lists a verb's arguments. Start with: twiddle train models/digits.yaml", verbs},
      argc, argv);
}
