/* router_device.h - what routers' losses and biases (router_balance.c, router_sums.c,
 * router_bias.c) compute beside the choice of experts, on a device: queued there, with the bits of
 * the host. Probabilities p [rows, E] are softmaxes (ls_routing_device_softmax()). */
#ifndef LS_LAYERS_ROUTER_DEVICE_H
#define LS_LAYERS_ROUTER_DEVICE_H

#include "layers/routing.h"

/* What a router's loss for an even load notes (ls_layers_note_loads()). */
typedef struct ls_router_notes {
    double *to; /* the first number of the first sample; NULL: nothing is noted */
    int64_t stride;
    int64_t dropped;  /* the number of what is over the capacity */
    int64_t routers;  /* whose parts are added up */
    bool begins;      /* the sum */
    int64_t capacity; /* 0: none */
} ls_router_notes;

/* Losses and notes of the call's samples, and the gradient of the logits if it is wanted. */
void ls_router_device_balance(const ls_layer_call *, const ls_routing *, float factor,
                              const float *p, const ls_router_notes *);

/* The call's y = the sums of samples of T rows, plus before (NULL: 0); and the gradient of the
 * logits. */
void ls_router_device_sums(const ls_layer_call *, const ls_routing *, int64_t T, const float *p,
                           const float *before);
void ls_router_device_sums_back(const ls_layer_call *, const ls_routing *, int64_t T,
                                const float *p);
/* The losses of the call's samples, and the gradient of the sums [2, E] if it is wanted. */
void ls_router_device_loss(const ls_layer_call *, int64_t E, double factor);

/* y [rows, E] = 1 for the experts of a row, 0 for the others; and sum [E] = or += the loads, as
 * router_bias.c counts them. */
void ls_router_device_chosen(const ls_compute *, const ls_routing *, float *y);
void ls_router_device_loads(const ls_compute *, const ls_routing *, bool add, float *sum);

#endif
