# syntax=docker/dockerfile:1
# A static binary on a base without shell or package manager.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY fleet/go.mod fleet/go.sum ./fleet/
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH LDFLAGS
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w ${LDFLAGS}" -o /manager .

FROM gcr.io/distroless/static:nonroot
LABEL org.opencontainers.image.title="Chandler" \
      org.opencontainers.image.description="Cluster API add-on provider" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/cluster-chandler/chandler"
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
