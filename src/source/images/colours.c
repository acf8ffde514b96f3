/* colours.c - see colours.h. */
#include "source/images/colours.h"

/* factor of x, and the rest of `plain`. */
static uint8_t mix(uint8_t x, uint8_t plain, int32_t factor) {
    int64_t sum = (int64_t)factor * x + (int64_t)(LS_COLOURS_ONE - factor) * plain;
    if (sum < 0) return 0;
    sum /= LS_COLOURS_ONE;
    return sum > 255 ? 255 : (uint8_t)sum;
}

void ls_colours_brightness(uint8_t *pixels, size_t n, int channels, int32_t factor) {
    for (size_t i = 0; i < n * (size_t)channels; i++) pixels[i] = mix(pixels[i], 0, factor);
}

void ls_colours_contrast(uint8_t *pixels, size_t n, int channels, int32_t factor) {
    uint64_t sum = n / 2; /* to nearest */
    for (size_t i = 0; i < n; i++)
        sum += channels == 3 ? ls_colours_gray(pixels + 3 * i) : pixels[i];
    uint8_t mean = (uint8_t)(sum / n);
    for (size_t i = 0; i < n * (size_t)channels; i++) pixels[i] = mix(pixels[i], mean, factor);
}

void ls_colours_saturation(uint8_t *pixels, size_t n, int32_t factor) {
    for (size_t i = 0; i < n; i++, pixels += 3) {
        uint8_t gray = ls_colours_gray(pixels);
        for (int c = 0; c < 3; c++) pixels[c] = mix(pixels[c], gray, factor);
    }
}

/* Colours are a circle of six parts: in each, one channel is the highest, one the lowest, and one
 * rises or falls between them. `hue` is a place on it, in parts of LS_COLOURS_ONE. */
static int64_t hue_of(const uint8_t *p, int high, int spread) {
    int part = p[0] == high ? 0 : p[1] == high ? 2 : 4;
    int behind = part == 0 ? p[1] - p[2] : part == 2 ? p[2] - p[0] : p[0] - p[1];
    int64_t hue = (int64_t)part * LS_COLOURS_ONE + (int64_t)behind * LS_COLOURS_ONE / spread;
    return hue < 0 ? hue + 6 * LS_COLOURS_ONE : hue;
}

static void set_hue(uint8_t *p, int high, int spread, int64_t hue) {
    int part = (int)(hue / LS_COLOURS_ONE);
    int64_t within = hue % LS_COLOURS_ONE;
    if (part % 2) within = LS_COLOURS_ONE - within; /* it falls */
    int low = high - spread;
    int between = low + (int)((spread * within + LS_COLOURS_ONE / 2) / LS_COLOURS_ONE);
    int values[6][3] = {{high, between, low}, {between, high, low}, {low, high, between},
                        {low, between, high}, {between, low, high}, {high, low, between}};
    for (int c = 0; c < 3; c++) p[c] = (uint8_t)values[part][c];
}

void ls_colours_hue(uint8_t *pixels, size_t n, int32_t turn) {
    const int64_t circle = 6 * (int64_t)LS_COLOURS_ONE;
    for (size_t i = 0; i < n; i++, pixels += 3) {
        int high = pixels[0], low = pixels[0];
        for (int c = 1; c < 3; c++) {
            if (pixels[c] > high) high = pixels[c];
            if (pixels[c] < low) low = pixels[c];
        }
        if (high == low) continue; /* gray has no hue */
        int64_t hue = hue_of(pixels, high, high - low) + 6 * (int64_t)turn;
        hue = (hue % circle + circle) % circle;
        set_hue(pixels, high, high - low, hue);
    }
}
