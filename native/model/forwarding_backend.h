// Another backend by its own name and memory: every call but the operations goes on to it as it is. The base
// of those that do something around an operation, so that each says only what it changes.
#pragma once

#include "ops/backend.h"

namespace tessera {

class ForwardingBackend : public Backend {
 public:
  std::string name() const override { return inner_.name(); }
  DType act_dtype() const override { return inner_.act_dtype(); }
  DType weight_dtype() const override { return inner_.weight_dtype(); }
  bool fixed_shapes() const override { return inner_.fixed_shapes(); }
  std::vector<KernelInfo> kernels(const GdnShape& g, const AttnShape& a) const override {
    return inner_.kernels(g, a);
  }
  void* allocate(size_t bytes) override { return inner_.allocate(bytes); }
  void release(void* p) override { inner_.release(p); }
  void zero(void* p, size_t n) override { inner_.zero(p, n); }
  void copy_in(void* d, const void* s, size_t n) override { inner_.copy_in(d, s, n); }
  void copy_out(void* d, const void* s, size_t n) override { inner_.copy_out(d, s, n); }
  void copy(void* d, const void* s, size_t n) override { inner_.copy(d, s, n); }
  void synchronize() override { inner_.synchronize(); }
  void* allocate_host(size_t bytes) override { return inner_.allocate_host(bytes); }
  void release_host(void* p) override { inner_.release_host(p); }
  void upload(void* d, const void* s, size_t n) override { inner_.upload(d, s, n); }
  void download(void* d, const void* s, size_t n) override { inner_.download(d, s, n); }
  void upload_ahead(void* d, void* staging, const void* s, size_t n) override {
    inner_.upload_ahead(d, staging, s, n);
  }
  i64 mark() override { return inner_.mark(); }
  void wait(i64 mark) override { inner_.wait(mark); }
  size_t workspace_bytes(const GdnShape& g, const AttnShape& a, i64 T, i64 H, i64 I, i64 V) const override {
    return inner_.workspace_bytes(g, a, T, H, I, V);
  }
  void set_workspace(void* p, size_t bytes) override { inner_.set_workspace(p, bytes); }
  int capture(const std::function<void()>& enqueue) override { return inner_.capture(enqueue); }
  void launch(int graph) override { inner_.launch(graph); }
  void scope(const char* phase, int layer) override { inner_.scope(phase, layer); }
  void profile(bool on) override { inner_.profile(on); }
  std::vector<OpTime> op_times() override { return inner_.op_times(); }
  std::vector<OpSpan> op_spans() override { return inner_.op_spans(); }
  DeviceRoof roof() override { return inner_.roof(); }
  std::string profile_source() const override { return inner_.profile_source(); }
  i64 idle_launches() const override { return inner_.idle_launches(); }
  i64 submissions() const override { return inner_.submissions(); }
  i64 kernels(int graph) const override { return inner_.kernels(graph); }
  size_t context_bytes() const override { return inner_.context_bytes(); }
  size_t memory_used() const override { return inner_.memory_used(); }
  i64 beside(const char* op, double bytes, const std::function<void(void*)>& work) override {
    return inner_.beside(op, bytes, work);
  }
  void meet() override { inner_.meet(); }
  void meet(i64 ticket) override { inner_.meet(ticket); }
  void keep_sum(void* to, DType type, const float* sum, i64 n, bool accumulate, void* stream) override {
    inner_.keep_sum(to, type, sum, n, accumulate, stream);
  }

 protected:
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  Backend& inner_;
};

}  // namespace tessera
