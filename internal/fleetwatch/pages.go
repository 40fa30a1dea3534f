// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

const (
	// listTimeout is how long a list may take, with all of its pages.
	listTimeout = 2 * time.Minute
	// pageTimeout is how long a page of it may take, also if the server asks to come back later.
	pageTimeout = 45 * time.Second
	// pageSize is how many objects are listed in one request.
	pageSize = 500
)

// listPages lists page by page, and keeps of each object what keep returns, nothing for nil. Its error ends
// the list.
func listPages(ctx context.Context, objects metadata.ResourceInterface, o metav1.ListOptions, keep func(*metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error)) (*metav1.PartialObjectMetadataList, error) {
	all := &metav1.PartialObjectMetadataList{}
	o.Limit = pageSize
	for {
		page, err := onePage(ctx, objects, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			kept, err := keep(&page.Items[i])
			if err != nil {
				return nil, err
			}
			if kept != nil {
				all.Items = append(all.Items, *kept)
			}
		}
		all.ListMeta = metav1.ListMeta{ResourceVersion: page.ResourceVersion}
		if page.Continue == "" {
			return all, nil
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = page.Continue, "", ""
	}
}

func onePage(ctx context.Context, objects metadata.ResourceInterface, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return objects.List(ctx, o)
}
