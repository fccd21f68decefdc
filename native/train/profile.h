// The `profile` event: one step, operation by operation.
#pragma once

#include "core/json_fwd.h"
#include "model/profiled_backend.h"

namespace tessera {

// [{operation, phase, where, calls, averageUs, totalMs, flops, bytes, percentOfRoof?, couldSaveMs?}], the
// longest first. With an unknown roof the last two are absent.
Json host_rows(const std::vector<ProfiledBackend::Row>& rows, const DeviceRoof& roof);
// The same of device operations; and as the account sums them.
Json device_rows(const std::vector<OpTime>& rows);
std::vector<ProfiledBackend::Row> as_rows(const std::vector<OpTime>& rows);
// {names: [operation …], phases: [phase …], spans: [[name, phase, layer, beginMs, ms] …]} with indices into
// the lists; spans from the last micro-batch on where there are many.
Json timeline_json(const std::vector<OpSpan>& spans);
// Time from the first operation's begin to the last one's end.
double span_ms(const std::vector<OpSpan>& spans);

}  // namespace tessera
