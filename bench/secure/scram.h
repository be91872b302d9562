/* SCRAM-SHA-512 (RFC 5802) for the limit and the generator: the user "me" with the password "secret". */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <string.h>

enum { DIGEST = 64, ENCODED = 96, SCRAM_TEXT = 1024, SASL_HANDSHAKE = 17, SASL_AUTHENTICATE = 36 };
#define USER "me"
#define PASSWORD "secret"
#define MECHANISM "SCRAM-SHA-512"

typedef unsigned char Digest[DIGEST];

static void hmac(const unsigned char *key, const char *text, unsigned char *into) {
    unsigned int length = DIGEST;
    HMAC(EVP_sha512(), key, DIGEST, (const unsigned char *)text, strlen(text), into, &length);
}

static void salted(const unsigned char *salt, int length, int iterations, unsigned char *into) {
    PKCS5_PBKDF2_HMAC(PASSWORD, (int)strlen(PASSWORD), salt, length, iterations, EVP_sha512(), DIGEST, into);
}

static void mix(const unsigned char *one, const unsigned char *two, unsigned char *into) {
    for (int i = 0; i < DIGEST; i++) into[i] = one[i] ^ two[i];
}

static void encode(const unsigned char *bytes, int length, char *into) { EVP_EncodeBlock((unsigned char *)into, bytes, length); }

/* Bytes decoded, -1 for what is no base64; ``into`` has room for three more. */
static int decode(const char *text, size_t length, unsigned char *into) {
    int count = EVP_DecodeBlock(into, (const unsigned char *)text, (int)length);
    for (size_t i = length; count > 0 && i > 0 && text[i - 1] == '='; i--) count--;
    return count;
}

/* A nonce of 24 letters. */
static void nonce(char *into) {
    unsigned char bytes[18];
    RAND_bytes(bytes, sizeof bytes);
    encode(bytes, sizeof bytes, into);
}

/* Where the value of ``name`` begins in "n=...,r=...", NULL when it is not there; ``length``: up to the next comma. */
static const char *attribute(const char *message, char name, size_t *length) {
    for (const char *at = message; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (at[0] == name && at[1] == '=') {
            *length = strcspn(at + 2, ",");
            return at + 2;
        }
    return NULL;
}
