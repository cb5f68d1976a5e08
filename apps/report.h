#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/metrics.h"
#include "apps/network_facts.h"
#include "data/dataset.h"

namespace twiddle {

// What report.html shows of a run.
struct Report {
  struct Picture {
    Image image;
    std::string caption;
  };
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;
  History history;
  std::vector<Picture> filters, mistakes;
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // [actual * classes + predicted]; empty: not measured
  std::vector<LayerFacts> layers;
};

// One page that needs nothing from outside: curves as SVG, pictures as data URIs.
std::string report_html(const Report& report);

// Everything about a run as it stands; `validation` may be null.
Report make_report(const Config& config, Trainer& trainer, History history, const EvalResult* validation);

}  // namespace twiddle
