#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/report/best_validation.h"
#include "apps/report/metrics.h"
#include "apps/verbs/network_facts.h"
#include "data/formats/dataset.h"

namespace twiddle {

// What report.html shows of a run.
struct Report {
  struct Picture {
    Image image;
    std::string caption;
  };
  std::string title, summary;  // "digits-001", "97.64% top-1 at epoch 5 of 12"
  std::vector<Fact> facts;
  std::string config;  // YAML
  History history;
  std::string examined;                           // which weights made these mistakes: "epoch 5"
  std::vector<Picture> filters, mistakes, worst;  // worst: of images with several labels
  std::vector<std::vector<Picture>> restored;     // of images made of images: input, output and what was wanted
  std::vector<std::string> classes;
  std::shared_ptr<const EvalResult> validation;  // null: none
  std::vector<LayerFacts> layers;
};

// One page that needs nothing from outside: curves as SVG, pictures as data URIs.
std::string report_html(const Report& report);

// Where a run is kept, and how and when this process was started.
struct RunOrigin {
  std::string folder, command, started;
};

// Everything about a run as it stands; `validation` may be null.
Report make_report(const Config& config, Trainer& trainer, const RunOrigin& origin, History history,
                   const ValidatedEpoch* validation);

}  // namespace twiddle
