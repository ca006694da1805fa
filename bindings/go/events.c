#include "events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct event {
  struct event *next;
  char *text;
};

struct windrow_go_events {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct event *first, **last;
  bool has_ended;
};

static void leave(void *state, const char *text) {
  windrow_go_events *events = state;
  struct event *event = malloc(sizeof *event);
  size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (event == NULL || copy == NULL) abort();
  memcpy(copy, text, size);
  *event = (struct event){NULL, copy};
  pthread_mutex_lock(&events->lock);
  *events->last = event;
  events->last = &event->next;
  pthread_cond_signal(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

static void end(void *state) {
  windrow_go_events *events = state;
  pthread_mutex_lock(&events->lock);
  events->has_ended = true;
  pthread_cond_signal(&events->changed);
  pthread_mutex_unlock(&events->lock);
}

windrow_error *windrow_go_listen(windrow_options *options, windrow_go_events **made) {
  windrow_error *error;
  windrow_go_events *events = malloc(sizeof *events);
  if (events == NULL) abort();
  pthread_mutex_init(&events->lock, NULL);
  pthread_cond_init(&events->changed, NULL);
  events->first = NULL;
  events->last = &events->first;
  events->has_ended = false;
  /* After an error the state has ended, and the next event is the end. */
  windrow_options_set_listener(options, leave, events, end, &error);
  *made = events;
  return error;
}

char *windrow_go_next_event(windrow_go_events *events) {
  pthread_mutex_lock(&events->lock);
  while (events->first == NULL && !events->has_ended) pthread_cond_wait(&events->changed, &events->lock);
  struct event *event = events->first;
  if (event != NULL) {
    events->first = event->next;
    if (events->first == NULL) events->last = &events->first;
  }
  pthread_mutex_unlock(&events->lock);
  if (event == NULL) {
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->lock);
    free(events);
    return NULL;
  }
  char *text = event->text;
  free(event);
  return text;
}
