#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/report/best_validation.h"
#include "apps/report/metrics.h"
#include "apps/verbs/network_facts.h"
#include "data/formats/dataset.h"

namespace twiddle {

// The content of report.html.
struct Report {
  struct Picture {
    Image image;
    std::string caption;
  };
  std::string title, summary;  // "digits-001", "97.64% top-1 at epoch 5 of 12"
  std::vector<Fact> facts;
  std::string config;  // YAML
  History history;
  std::string examined;                           // the weights that made these mistakes: "epoch 5"
  std::vector<Picture> filters, mistakes, worst;  // worst: only for multi-label data
  std::vector<std::vector<Picture>> restored;     // for image-to-image networks: input, output and target
  std::vector<std::string> classes;
  std::shared_ptr<const EvalResult> validation;  // null: none
  std::vector<LayerFacts> layers;
};

// Returns one self-contained page: curves as SVG, pictures as data URIs.
std::string report_html(const Report& report);

// The folder of a run, with the command line and start time of this process.
struct RunOrigin {
  std::string folder, command, started;
};

// Collects the current state of a run; `validation` may be null.
Report make_report(const Config& config, Trainer& trainer, const RunOrigin& origin, History history,
                   const ValidatedEpoch* validation);

}  // namespace twiddle
