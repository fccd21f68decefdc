// Which of the library's algorithms a matrix product takes, kept in a file so that every process takes the
// same and two runs are equal to the bit. Processes that choose at the same moment agree: what was written
// first holds for all.
#pragma once

#include <map>
#include <string>

namespace tessera {

class ProductChoices {
 public:
  // One product a line, a tab, its algorithm. A file that is not there, or lines that are none, hold nothing.
  void open(const std::string& file);
  // "" where nothing is known.
  std::string find(const std::string& product) const;
  // The choice that holds from now on: the file's, where another process made one since it was read, else
  // `algorithm`, which is added to the file. A file that cannot be written costs equality across processes,
  // not the run.
  std::string settle(const std::string& product, const std::string& algorithm);

 private:
  void read();
  void write() const;
  std::string file_;
  std::map<std::string, std::string> choices_;
};

}  // namespace tessera
