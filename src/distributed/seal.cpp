// seal.cpp: SHA-256 and HMAC, written as in their standards.
#include "src/distributed/seal.h"

#include <array>
#include <bit>
#include <cstdint>

namespace wd {
namespace {

constexpr std::size_t kBlock = 64;  // [bytes]
using Digest = std::array<std::uint32_t, 8>;

constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t word_at(std::string_view block, std::size_t k) {
  std::uint32_t word = 0;
  for (std::size_t byte = 0; byte < 4; ++byte)
    word = word << 8 | static_cast<unsigned char>(block[4 * k + byte]);
  return word;
}

void add_block(Digest& digest, std::string_view block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t k = 0; k < 16; ++k) w[k] = word_at(block, k);
  for (std::size_t k = 16; k < w.size(); ++k) {
    const std::uint32_t s0 = std::rotr(w[k - 15], 7) ^ std::rotr(w[k - 15], 18) ^ w[k - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[k - 2], 17) ^ std::rotr(w[k - 2], 19) ^ w[k - 2] >> 10;
    w[k] = w[k - 16] + s0 + w[k - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = digest;
  for (std::size_t k = 0; k < w.size(); ++k) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[k] + w[k];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const Digest more = {a, b, c, d, e, f, g, h};
  for (std::size_t k = 0; k < digest.size(); ++k) digest[k] += more[k];
}

void append_bytes(std::string& into, std::uint64_t value, int count) {
  for (int byte = count - 1; byte >= 0; --byte) into += static_cast<char>(value >> 8 * byte & 0xff);
}

std::string sha256(std::string text) {
  const std::uint64_t bits = 8 * text.size();
  text += static_cast<char>(0x80);
  while (text.size() % kBlock != kBlock - 8) text += '\0';
  append_bytes(text, bits, 8);
  Digest digest = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (std::size_t at = 0; at < text.size(); at += kBlock)
    add_block(digest, std::string_view(text).substr(at, kBlock));
  std::string bytes;
  for (const std::uint32_t word : digest) append_bytes(bytes, word, 4);
  return bytes;
}

std::string xor_all(std::string text, char value) {
  for (char& c : text) c = static_cast<char>(c ^ value);
  return text;
}

}  // namespace

std::string seal(std::string_view key, std::string_view text) {
  std::string block = key.size() > kBlock ? sha256(std::string(key)) : std::string(key);
  block.resize(kBlock, '\0');
  const std::string inner = sha256(xor_all(block, 0x36) + std::string(text));
  std::string hex;
  for (const char c : sha256(xor_all(block, 0x5c) + inner)) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

}  // namespace wd
