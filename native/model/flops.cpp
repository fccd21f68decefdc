#include "model/flops.h"

#include <algorithm>

namespace tessera {

double step_flops(const ModelConfig& config, const Layout& layout, const std::vector<i64>& sequences,
                  i64 head_rows) {
  const i64 table = config.vocab * config.hidden;
  const double matrices = static_cast<double>(layout.big_count - table * (config.tied ? 1 : 2));
  double positions = 0, squares = 0;
  for (const i64 n : sequences) {
    positions += static_cast<double>(n);
    squares += static_cast<double>(n) * static_cast<double>(n);
  }
  const auto full = std::count(config.layers.begin(), config.layers.end(), LayerKind::full_attention);
  return 6.0 * matrices * positions + 6.0 * static_cast<double>(table) * static_cast<double>(head_rows) +
         7.0 * squares * static_cast<double>(full * config.attn.heads * config.attn.head_dim);
}

}  // namespace tessera
